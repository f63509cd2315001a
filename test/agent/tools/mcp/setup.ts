import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type McpDeps, openMcpServers } from '../../../../shared/agent/tools/mcp/mcp.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { createEgress } from '../../../../shared/platform/net/egress.ts'
import { type Caller, callerOf, makeFolder, removeFolders } from '../setup.ts'

/** `problems` and `news` are the lines for the log, of the levels warn and info. */
export type Opened = Awaited<ReturnType<typeof openMcpServers>> & { call: Caller; problems: string[]; news: string[] }

export type Times = Partial<Omit<McpDeps, 'configFile' | 'variables' | 'fetch' | 'log'>>

/** What a test opens is closed after it, the newest first. */
export function useMcp() {
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
    await removeFolders()
  })

  async function open(mcpServers: JsonObject, times: Times = {}): Promise<Opened> {
    const configFile = join(await makeFolder(), 'mcp.json')
    await writeFile(configFile, JSON.stringify({ mcpServers }))
    const [problems, news]: [string[], string[]] = [[], []]
    const log = {
      info: (message: string) => void news.push(message),
      warn: (message: string) => void problems.push(message),
    }
    const { fetch, close } = createEgress({ allowPrivate: true, maxBodyBytes: 1_000_000 })
    const opened = await openMcpServers({ configFile, variables: {}, fetch, log, startTimeoutMs: 10_000, ...times })
    closing.push(close, opened.close)
    return { ...opened, call: callerOf(opened.tools, '/nowhere'), problems, news }
  }

  /** Starts an HTTP server and returns the address of its MCP endpoint. */
  async function listen(server: Server, port = 0): Promise<string> {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    closing.push(async () => server.close().closeAllConnections())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  }

  return { open, listen, closing }
}
