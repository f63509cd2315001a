import { parseArgs } from 'node:util'
import { startConformanceServer } from './server.ts'

const HELP = `usage: node test/conformance/main.ts [--port 8099]

Plays the recorded streams for a client, until it is ended. See README.md in this folder.
`

const { values } = parseArgs({ options: { port: { type: 'string', default: '8099' }, help: { type: 'boolean' } } })
process.stdout.write(values.help === true ? HELP : await start(Number(values.port)))

async function start(port: number): Promise<string> {
  const { url, scenarios } = await startConformanceServer(port)
  const list = scenarios.map(({ head }) => `  ${head.name.padEnd(32)} ${head.about}\n`).join('')
  return `${url}/<scenario> stands for the base address of the API. The scenarios are listed at ${url}/ too:\n${list}`
}
