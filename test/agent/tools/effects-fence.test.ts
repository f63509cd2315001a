import { access, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { createBashTool } from '../../../shared/agent/tools/process/bash.ts'
import { createWebFetchTool } from '../../../shared/agent/tools/web/web-fetch.ts'
import { createFileTools } from '../../../shared/agent/tools/workspace/file-tools.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { callerOf, makeFolder, removeFolders } from './setup.ts'

describe('tools in a process that was paused after a call began', () => {
  let folder: string
  let requests: number
  const egress = createEgress({ allowPrivate: true })
  const server = createServer((_req, res) => {
    requests++
    res.setHeader('content-type', 'text/plain').end('page')
  })
  before((done) => void server.listen(0, '127.0.0.1', done))
  after(async () => {
    await egress.close()
    server.close()
  })
  beforeEach(async () => {
    folder = await makeFolder()
    requests = 0
  })
  afterEach(removeFolders)

  const tools = [createBashTool(), ...createFileTools(), createWebFetchTool({ egress: async () => egress })]
  const refuse = () => {
    throw new AppError('unavailable', 'This process may not act.')
  }
  const call = (name: string, input: JsonObject, assertMayAct: () => void = refuse) =>
    callerOf(tools, folder)(name, input, { assertMayAct })
  const exists = (name: string) =>
    access(join(folder, name)).then(
      () => true,
      () => false,
    )
  const REFUSED = { output: 'This process may not act.', isError: true }

  it('P2: Bash starts no command', async () => {
    expect(await call('Bash', { command: 'touch made' })).to.deep.equal(REFUSED)
    expect(await exists('made')).to.equal(false)
  })

  it('P2: Write and Edit change no file', async () => {
    await writeFile(join(folder, 'old'), 'before')
    expect(await call('Write', { path: 'new', content: 'x' })).to.deep.equal(REFUSED)
    expect(await call('Write', { path: 'old', content: 'x' })).to.deep.equal(REFUSED)
    expect(await call('Edit', { path: 'old', old_string: 'before', new_string: 'after' })).to.deep.equal(REFUSED)
    expect([await exists('new'), await readFile(join(folder, 'old'), 'utf8')]).to.deep.equal([false, 'before'])
  })

  it('P2: WebFetch sends no request, neither over a new connection nor over one that is open', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    expect(await call('WebFetch', { url })).to.deep.equal(REFUSED)
    expect(requests).to.equal(0)
    expect(await call('WebFetch', { url }, () => {})).to.deep.equal({ output: 'page', isError: false })
    expect(await call('WebFetch', { url })).to.deep.equal(REFUSED)
    expect(requests).to.equal(1)
  })

  it('P2: WebFetch checks after its connection is open', async () => {
    let connections = 0
    server.on('connection', () => connections++)
    const fresh = createEgress({ allowPrivate: true })
    const url = `http://localhost:${(server.address() as AddressInfo).port}/`
    const seen: number[] = []
    const fetchTool = createWebFetchTool({ egress: async () => fresh })
    const check = () => void seen.push(connections)
    await callerOf([fetchTool], folder)('WebFetch', { url }, { assertMayAct: check })
    expect([seen, requests]).to.deep.equal([[1], 1])
    await fresh.close()
  })
})
