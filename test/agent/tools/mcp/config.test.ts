import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readMcpConfig } from '../../../../shared/agent/tools/mcp/config.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { makeFolder, removeFolders } from '../setup.ts'

describe('MCP_CONFIG', () => {
  let file: string
  beforeEach(async () => {
    file = join(await makeFolder(), 'mcp.json')
  })
  afterEach(removeFolders)

  async function problemOf(content: unknown, env: Record<string, string> = {}): Promise<string> {
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
    try {
      await readMcpConfig(file, env)
    } catch (cause) {
      if (cause instanceof AppError) return cause.message
      throw cause
    }
    throw new Error('the file was accepted')
  }

  it('D1.3 MCP_CONFIG: reads stdio servers and streamable HTTP servers from {"mcpServers": {...}}', async () => {
    const mcpServers = {
      files: {
        command: 'npx',
        args: ['-y', 'server'],
        cwd: '/srv',
        env: { KEY: 'v' },
        alwaysAllow: ['x'],
        trusted: true,
      },
      bare: { type: 'stdio', command: 'server' },
      remote: { type: 'http', url: 'https://example.com/mcp', headers: { authorization: 'Bearer t' } },
      off: { command: 'x', disabled: true },
    }
    await writeFile(file, JSON.stringify({ mcpServers, inputs: [] }))
    expect(await readMcpConfig(file, {})).to.deep.equal([
      {
        name: 'files',
        isTrusted: true,
        command: 'npx',
        args: ['-y', 'server'],
        cwd: '/srv',
        env: { KEY: 'v' },
        secrets: ['v'],
      },
      { name: 'bare', isTrusted: false, command: 'server', args: [], cwd: undefined, env: {}, secrets: [] },
      {
        name: 'remote',
        isTrusted: false,
        url: new URL('https://example.com/mcp'),
        headers: { authorization: 'Bearer t' },
        secrets: ['Bearer t'],
      },
    ])
  })

  it('variables stand in each text as ${VAR}, ${VAR:-default} and ${env:VAR}, and their values are secrets', async () => {
    const mcpServers = {
      files: {
        command: '${HOME}/bin/server',
        cwd: '${env:HOME}/work',
        args: ['--token=${TOKEN}', '${LEVEL:-info}', '${EMPTY:-}', '$TOKEN ${1} ${HOME%/*} ${x', '${NESTED}'],
        env: { KEY: 'a ${TOKEN} b', '${TOKEN}': 'name' },
        note: '${UNKNOWN}',
      },
      remote: { url: 'https://${HOST}/mcp?key=${KEY}', headers: { authorization: 'Bearer ${TOKEN}' } },
    }
    await writeFile(file, JSON.stringify({ mcpServers }))
    const env = { HOME: '/home/me', TOKEN: 't-1', HOST: 'example.com', KEY: 'k-1', EMPTY: '', NESTED: '${TOKEN}' }
    expect(await readMcpConfig(file, env)).to.deep.equal([
      {
        name: 'files',
        isTrusted: false,
        command: '/home/me/bin/server',
        cwd: '/home/me/work',
        args: ['--token=t-1', 'info', '', '$TOKEN ${1} ${HOME%/*} ${x', '${TOKEN}'],
        env: { KEY: 'a t-1 b', '${TOKEN}': 'name' },
        secrets: ['t-1', '${TOKEN}', 't-1', 'a t-1 b', 'name'],
      },
      {
        name: 'remote',
        isTrusted: false,
        url: new URL('https://example.com/mcp?key=k-1'),
        headers: { authorization: 'Bearer t-1' },
        secrets: ['k-1', 't-1', 'Bearer t-1'],
      },
    ])
  })

  it('a variable that is not set, and one that only an editor knows, are problems that name it', async () => {
    const mcpServers = {
      one: { command: 'x', env: { KEY: '${GITHUB_TOKEN}' }, args: ['${input:token}'] },
      two: { url: 'https://x/${PART}', headers: { a: '${EMPTY}' } },
    }
    const problem = await problemOf({ mcpServers }, { EMPTY: '' })
    for (const part of [
      'mcpServers.one.env.KEY needs the variable GITHUB_TOKEN, which is not set',
      'mcpServers.one.args.0 has ${input:token}, which only an editor knows: write ${VAR} and set the variable VAR',
      'mcpServers.two.url needs the variable PART, which is not set',
      'mcpServers.two.headers.a needs the variable EMPTY, which is not set',
    ])
      expect(problem).to.include(part)
  })

  it('D40: an entry may have a scope, a version of the protocol, a time in milliseconds or seconds and tools that are left out; other fields are named', async () => {
    const fields = { scope: 'session', protocolVersion: '2025-06-18', disabledTools: ['a'] }
    const mcpServers = {
      one: { command: 'x', ...fields, timeout: 90_000, autoApprove: ['b'], note: 'c' },
      two: { url: 'http://x/', timeout: 90 },
      off: { command: 'x', enabled: false },
    }
    await writeFile(file, JSON.stringify({ mcpServers }))
    const unknown: string[] = []
    const servers = await readMcpConfig(file, {}, (text) => void unknown.push(text))
    expect(servers.map(({ name, timeoutMs }) => [name, timeoutMs])).to.deep.equal([
      ['one', 90_000],
      ['two', 90_000],
    ])
    expect(servers[0]).to.deep.include(fields)
    expect(unknown).to.deep.equal([
      'MCP_CONFIG: these fields of the server one are not known and have no effect: autoApprove, note',
    ])
    const wrong = { scope: 'all', protocolVersion: '1', timeout: 0, disabledTools: 'a', enabled: 1 }
    expect(await problemOf({ mcpServers: { a: { command: 'x', ...wrong } } })).to.match(
      /a\.enabled must be .*a\.scope must be session, tenant, shared.*a\.protocolVersion must be .*a\.timeout must be .*a\.disabledTools must be /,
    )
  })

  it('accepts an empty list of servers', async () => {
    await writeFile(file, '{"mcpServers": {}}')
    expect(await readMcpConfig(file, {})).to.deep.equal([])
  })

  it('the error for an absent file or invalid JSON names the file and the problem, without its content', async () => {
    const absent = await readMcpConfig('/nonexistent/mcp.json', {}).catch((cause: unknown) => cause)
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
        types: { command: '', args: 'a b', env: { A: 1 }, cwd: 7 },
        address: { url: 'ftp://x/', headers: ['a'], trusted: 'true' },
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
      'mcpServers.types.cwd must be the path of a folder',
      'mcpServers.types.env must be an object of texts',
      'mcpServers.address.url must be an http or https address',
      'mcpServers.address.headers must be an object of texts',
      'mcpServers.address.trusted must be true or false',
    ]) {
      expect(problem).to.include(part)
    }
  })
})
