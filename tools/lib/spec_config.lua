-- SPDX-License-Identifier: Apache-2.0
-- What busted is configured with by `latchkey spec`: nothing.
return {}
