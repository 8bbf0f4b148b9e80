-- SPDX-License-Identifier: Apache-2.0
-- The short name of what specs stand on; `latchkey spec` gives it to everybody's.
return require('latchkey.spec')
