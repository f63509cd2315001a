// CommonJS (package.json beside this file) without types or static imports: an older Node can read it and say so.
const { version } = process
const wanted = Number.parseInt(require('../../package.json').engines.node.replace(/\D+/, ''), 10)

if (Number.parseInt(version.slice(1), 10) < wanted) {
  console.error(
    `agent-engine needs Node ${wanted} or newer and this is ${version}: run scripts/start, or install it from https://nodejs.org`,
  )
  process.exit(1)
}

// Stripping the types of every file costs a start some 45 ms; in node_modules the cache is as trusted as the code is.
require('node:module').enableCompileCache(require('node:path').join(__dirname, '../../node_modules/.cache/compile'))

import('./standalone.mts')
  .then(({ main }) => main())
  .catch((cause) => {
    console.error(cause)
    process.exit(1)
  })
