import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { text as readAll } from 'node:stream/consumers'
import { type CallToolResult, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** The state that several server instances share: over HTTP each request may have its own instance. */
export type Memory = { happened: Set<string>; bell: EventEmitter }

export const createMemory = (): Memory => ({ happened: new Set(), bell: new EventEmitter() })

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

/** Creates a small MCP server whose tools play the cases of the tests. */
export function createTestServer(memory: Memory): McpServer {
  const server = new McpServer({ name: 'test-server', version: '1.0.0' }, { capabilities: { tools: {} } })
  addPlainTools(server)
  addWaitingTools(server, memory)
  addProcessTools(server)
  return server
}

function addPlainTools(server: McpServer): void {
  const inputSchema = z.object({ text: z.string() })
  server.registerTool('echo', { description: 'Returns its input.', inputSchema }, async (input) => text(input.text))
  server.registerTool('refuse', { description: 'Always fails.' }, async () => ({ ...text('not today'), isError: true }))
  server.registerTool('dotted.name', { description: 'Has a dot in its name.' }, async () => text('odd'))
  server.registerTool('dotted_name', { description: 'Has the same name as another tool after cleaning.' }, async () =>
    text('twin'),
  )
  server.registerTool(`long_${'x'.repeat(90)}`, { description: 'Has a long name.' }, async () => text('long'))
  server.registerTool('picture', {}, async () => ({
    content: [
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource_link', name: 'page', uri: 'file:///page' },
      { type: 'resource', resource: { uri: 'file:///note', text: 'the note' } },
      { type: 'resource', resource: { uri: 'file:///out/a%20report.bin?v=1', blob: 'AAEC' } },
    ],
  }))
  server.registerResource('page', 'file:///page', {}, async ({ href }) => ({
    contents: [{ uri: href, text: 'the page' }],
  }))
}

function addWaitingTools(server: McpServer, { happened, bell }: Memory): void {
  const note = (event: string) => {
    happened.add(event)
    bell.emit(event)
  }
  server.registerTool('hang', { description: 'Reports progress, then waits until it is cancelled.' }, async (ctx) => {
    const { mcpReq } = ctx
    const { _meta: meta } = mcpReq
    if (meta?.progressToken !== undefined) {
      const params = { progressToken: meta.progressToken, progress: 1, total: 4, message: 'a quarter' }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
    note('hanging')
    if (!mcpReq.signal.aborted) await once(mcpReq.signal, 'abort')
    note('cancelled')
    return text('cancelled')
  })
  const inputSchema = z.object({ event: z.string() })
  server.registerTool(
    'wait_for',
    { description: 'Waits for an event of another call.', inputSchema },
    async (input) => {
      if (!happened.has(input.event)) await once(bell, input.event)
      return text(input.event)
    },
  )
}

function addProcessTools(server: McpServer): void {
  const command = z.object({ command: z.string() })
  server.registerTool('shell', { description: 'Runs a command.', inputSchema: command }, async (input) => {
    const child = spawn('bash', ['-c', input.command], { stdio: ['ignore', 'pipe', 'inherit'] })
    return text(await readAll(child.stdout))
  })
  server.registerTool('crash', { description: 'Ends the server.' }, async () => process.exit(1))
  server.registerTool('environment', { description: 'Names its environment variables.' }, async () =>
    text(Object.keys(process.env).toSorted().join(' ')),
  )
  server.registerTool(
    'pids',
    { description: 'Starts a child that ignores SIGTERM and returns both process ids.' },
    async () => {
      const child = spawn('/bin/sh', ['-c', 'trap "" TERM HUP; while :; do sleep 1; done'], { stdio: 'ignore' })
      await once(child, 'spawn')
      return text(`${process.pid} ${child.pid}`)
    },
  )
}
