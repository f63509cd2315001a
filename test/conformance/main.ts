import { parseArgs } from 'node:util'
import { startConformanceServer } from './server.ts'

const { values } = parseArgs({ options: { port: { type: 'string', default: '8099' }, help: { type: 'boolean' } } })
if (values.help) {
  console.log(
    'usage: node test/conformance/main.ts [--port 8099]\n\nPlays the recorded streams for a client. See README.md.',
  )
} else {
  const { url, scenarios } = await startConformanceServer(Number(values.port))
  console.log(`${url}/<scenario> stands for the base address of the API. The list of scenarios is at ${url}/`)
  for (const { name, about } of scenarios) console.log(`  ${name.padEnd(32)} ${about}`)
}
