import { createServer } from 'node:http'
import { HttpAgent } from '@ag-ui/client'
import { CopilotRuntime } from '@copilotkit/runtime/v2'
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'

/** CopilotKit's own runtime, which asks the agent at the address that is its argument. Prints its own address. */
const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url: process.argv[2] }) } })
const server = createServer(createCopilotNodeListener({ runtime, basePath: '/', cors: true }))
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
