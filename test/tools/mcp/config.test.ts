import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { AppError } from '../../../shared/errors.ts'
import { readMcpConfig } from '../../../shared/tools/mcp/config.ts'
import { makeFolder, removeFolders } from '../setup.ts'

describe('MCP_CONFIG', () => {
  let file: string
  beforeEach(async () => {
    file = join(await makeFolder(), 'mcp.json')
  })
  afterEach(removeFolders)

  async function problemOf(content: unknown): Promise<string> {
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
    try {
      await readMcpConfig(file)
    } catch (cause) {
      if (cause instanceof AppError) return cause.message
      throw cause
    }
    throw new Error('the file was accepted')
  }

  it('D1.3: reads stdio servers and streamable HTTP servers from {"mcpServers": {...}}', async () => {
    const mcpServers = {
      files: { command: 'npx', args: ['-y', 'server'], env: { KEY: 'v' }, alwaysAllow: ['x'] },
      bare: { type: 'stdio', command: 'server' },
      remote: { type: 'http', url: 'https://example.com/mcp', headers: { authorization: 'Bearer t' } },
      off: { command: 'x', disabled: true },
    }
    await writeFile(file, JSON.stringify({ mcpServers, inputs: [] }))
    expect(await readMcpConfig(file)).to.deep.equal([
      { name: 'files', command: 'npx', args: ['-y', 'server'], env: { KEY: 'v' } },
      { name: 'bare', command: 'server', args: [], env: {} },
      { name: 'remote', url: new URL('https://example.com/mcp'), headers: { authorization: 'Bearer t' } },
    ])
  })

  it('accepts an empty list of servers', async () => {
    await writeFile(file, '{"mcpServers": {}}')
    expect(await readMcpConfig(file)).to.deep.equal([])
  })

  it('the error for an absent file or invalid JSON names the file and the problem, without its content', async () => {
    const absent = await readMcpConfig('/nonexistent/mcp.json').catch((cause: unknown) => cause)
    expect(absent).to.be.instanceOf(AppError)
    expect((absent as AppError).message).to.equal('MCP_CONFIG /nonexistent/mcp.json: it cannot be read (ENOENT).')
    expect(await problemOf('{"key": "sk-123"\n "x"}')).to.equal(
      `MCP_CONFIG ${file}: it is not valid JSON (line 2 column 2).`,
    )
    expect(await problemOf('sk-123')).to.equal(`MCP_CONFIG ${file}: it is not valid JSON.`)
  })

  it('a file without the object mcpServers is refused', async () => {
    for (const content of [{}, [], 'null', '"x"', { mcpServers: [] }, { mcpServers: null }]) {
      expect(await problemOf(content)).to.include('it must be an object with the object "mcpServers" in it')
    }
  })

  it('reports all problems of all servers at once, each with its place', async () => {
    const problem = await problemOf({
      mcpServers: {
        none: {},
        both: { command: 'x', url: 'http://x/' },
        text: 'npx',
        old: { type: 'sse', url: 'http://x/' },
        kind: { type: 'http', command: 'x' },
        types: { command: '', args: 'a b', env: { A: 1 } },
        address: { url: 'ftp://x/', headers: ['a'] },
      },
    })
    for (const part of [
      'mcpServers.none must have either "command" or "url"',
      'mcpServers.both must have either "command" or "url"',
      'mcpServers.text must be an object',
      'mcpServers.old.type sse is not supported',
      'mcpServers.kind.type must be stdio',
      'mcpServers.types.command must be a text',
      'mcpServers.types.args must be a list of texts',
      'mcpServers.types.env must be an object of texts',
      'mcpServers.address.url must be an http or https address',
      'mcpServers.address.headers must be an object of texts',
    ]) {
      expect(problem).to.include(part)
    }
  })
})
