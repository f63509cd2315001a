import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startStandalone } from '../../test/support/product.ts'
import { tryGo } from './go.ts'
import { tryJava } from './java.ts'
import { SVIX_PRINTS, trySvix } from './svix.ts'
import type { Trial } from './trial.ts'

const USAGE = `usage: npm run try:clients -- [--only go|java|svix] [--folder PATH]

Starts the standalone form, has oapi-codegen (Go) and openapi-generator (Java) make clients of the API description that it serves, without
any option that mends it, compiles them, and uses each once: a plan is submitted and read, a run is answered, and what a flow remembers is
written as a text and as an object, and read. It needs Go, and Java 17 with Maven; the first time it fetches the generators, and takes
minutes. A webhook's signature is verified with the package svix, which npm fetches. TypeScript's and Python's clients are part of \`npm test\`.
`

const API_TOKEN = 'token-of-the-generated-clients'
/** The output of each generated client's program. */
const CLIENT_PRINTS = '{"output":"Hello back","parallel":true,"step":"one","memory":["a text",{"of":"an object"}]}'

type Attempt = { attempt(trial: Trial): Promise<string>; prints: string }

const TRIALS: Readonly<Record<string, Attempt>> = {
  go: { attempt: tryGo, prints: CLIENT_PRINTS },
  java: { attempt: tryJava, prints: CLIENT_PRINTS },
  svix: { attempt: trySvix, prints: SVIX_PRINTS },
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, folder: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
})
if (values.help) process.stdout.write(USAGE)
else process.exitCode = await main(values.folder ?? join(tmpdir(), 'agent-engine-clients'), values.only)

async function main(folder: string, only: string | undefined): Promise<number> {
  let failed = 0
  for (const [name, { attempt, prints }] of Object.entries(TRIALS)) {
    if (only !== undefined && only !== name) continue
    const printed = await onNewServer((url) => attempt({ folder: join(folder, name), url, token: API_TOKEN }))
    const isRight = printed.trim() === prints
    if (!isRight) failed++
    console.log(`${name}: ${isRight ? 'as expected' : `FAILED\n${printed}`}`)
  }
  return failed === 0 ? 0 : 1
}

/** Each client has a server of its own, since the flow's memory of one would show in the output of the other. */
async function onNewServer(attempt: (url: string) => Promise<string>): Promise<string> {
  const product = await startStandalone({ API_TOKEN })
  product.model.otherwise(() => 'Hello back')
  try {
    return await attempt(product.url).catch((cause: unknown) => String(cause))
  } finally {
    await product.close()
  }
}
