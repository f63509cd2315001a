import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { tryFaults } from './faults.ts'
import { install } from './install.ts'
import { serversOf, tryServers } from './servers.ts'
import { withProduct } from './trial.ts'

const USAGE = `usage: npm run try:mcp -- [--form standalone|cluster] [--folder PATH]

Installs MCP servers of npm, PyPI and Go, and lets the product use them unmodified: their lists, calls of each, and a stateful one (a browser,
where CHROMIUM names one) that two sessions and two tenants use at the same time, of which none may see anything of another. Then servers are
killed, hang, flood their output, answer 50 MB and are redeployed, while other runs call them and others. Prints a line for each check, and
exits with 1 when one is broken. It takes minutes.
`

const { values } = parseArgs({
  options: {
    form: { type: 'string', default: 'standalone' },
    folder: { type: 'string', default: join(tmpdir(), 'agent-engine-try-mcp') },
    help: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  const { folder } = values
  const installed = await install(folder, (line) => console.log(line))
  console.log(`servers: ${installed.versions}`)
  const place = { form: values.form === 'cluster' ? 'cluster' : 'standalone', folder } as const
  await withProduct(place, serversOf(installed, folder), (trial) => tryServers(trial, folder))
  await tryFaults(place, installed)
}

if (values.help) console.log(USAGE)
else await main()
