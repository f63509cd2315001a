// CommonJS without types or static imports (package.json beside this file), so that an older Node can read it far enough to say so.
const { version, env, execPath, execArgv } = process
const wanted = Number.parseInt(require('../../package.json').engines.node.replace(/\D+/, ''), 10)

if (Number.parseInt(version.slice(1), 10) < wanted) {
  console.error(
    `agent-engine needs Node ${wanted} or newer and this is ${version}: run scripts/start, or install it from https://nodejs.org`,
  )
  process.exit(1)
}

// Node strips the types of each file with a compiler of 17 MiB, unless the result is cached, and the cache of its entry file comes
// from the environment only. So the process becomes itself once more, under the same pid, with the cache on (and a heap
// that grows slowly: what streams have long let go is collected, not kept resident).
if (!env.NODE_COMPILE_CACHE && process.execve) {
  const cache = require('node:path').join(__dirname, '../../node_modules/.cache/compile')
  const flags = ['--max-semi-space-size=4', '--heap-growing-percent=50', ...execArgv]
  process.execve(execPath, [execPath, ...flags, __filename], { ...env, NODE_COMPILE_CACHE: cache })
}

import('./standalone.mts')
  .then(({ main }) => main())
  .catch((cause) => {
    console.error(cause)
    process.exit(1)
  })
