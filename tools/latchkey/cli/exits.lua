-- SPDX-License-Identifier: Apache-2.0
-- The exit codes of the program: what each means, and what to do. A code that means different
-- things has a row for each; `commands` are those whose meaning it is.
return {
  { code = 0, text = 'done', hint = 'nothing to do' },
  { code = 1,
    text = 'a tool found something: lint findings, an error of a script, a missing script',
    hint = 'read its output: each finding names its place' },
  { code = 2, commands = { 'load', 'status', 'verify', 'doctor', 'ls', 'top' },
    text = 'load, status, verify, doctor, ls, top: a server could not be asked, or only part of it',
    hint = 'check the server that the message names, then run the command again' },
  { code = 2, commands = { 'check' },
    text = 'check: a bound was reached before every order was explored',
    hint = 'raise the bound that the message names' },
  { code = 3, commands = { 'inspect' }, text = 'inspect: the lock is free',
    hint = 'nothing to do' },
  { code = 64, text = 'wrong use: an option, a duration, a name or the URL; nothing was touched',
    hint = 'correct what the message names; latchkey COMMAND --help lists the options' },
  { code = 69, text = 'no server could be reached, or it refused',
    hint = 'check address, credentials and permissions; latchkey doctor checks the server' },
  { code = 70, text = 'a defect of latchkey itself', hint = 'report it with the message' },
  { code = 75, text = 'the lock was held by another for the whole wait',
    hint = 'wait longer, or see who holds it: latchkey inspect NAME' },
  { code = 80, text = 'the lock was lost while the command ran',
    hint = 'its work may have run unprotected: check it, then run it again' },
  { code = 126, text = 'exec: the command was found, but could not be run',
    hint = 'check its permissions' },
  { code = 127, text = 'exec: the command was not found', hint = 'check its name and PATH' },
}
