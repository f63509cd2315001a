// In place of the packages `body-parser` and `qs`, which Express loads and few processes use: their functions, which load them when they are called.
const { createRequire } = require('node:module')

const requireAsExpress = createRequire(require.resolve('express'))
const late =
  (name, method) =>
  (...args) =>
    requireAsExpress(name)[method](...args)

module.exports = {
  json: late('body-parser', 'json'),
  raw: late('body-parser', 'raw'),
  text: late('body-parser', 'text'),
  urlencoded: late('body-parser', 'urlencoded'),
  parse: late('qs', 'parse'),
}
