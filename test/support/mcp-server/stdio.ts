import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createMemory, createTestServer } from './server.ts'

const memory = createMemory()
process.stderr.write('the test server starts\n')
serveStdio(() => createTestServer(memory))
