# SPDX-License-Identifier: Apache-2.0
# The date in what is built, in seconds since 1970: SOURCE_DATE_EPOCH where that is set, else that of the
# last commit, else 1980-01-01 as in bundles. So the same sources give the same bytes at any time.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" log -1 --format=%ct
    OUTPUT_VARIABLE lk_epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT lk_epoch MATCHES "^[0-9]+$")
    set(lk_epoch 315532800)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} "${lk_epoch}") # string(TIMESTAMP) takes it from there
endif()
set(lk_epoch "$ENV{SOURCE_DATE_EPOCH}")
