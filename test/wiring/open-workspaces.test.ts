import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { openWorkspaces } from '../../services/wiring/open-workspaces.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { ConfigError, loadConfig } from '../../shared/platform/config/config.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import { useS3 } from '../support/s3.ts'
import { useTempFolder } from '../support/temp-folder.ts'

describe('the workspaces of a process', () => {
  const s3 = useS3()
  const dir = useTempFolder({ perTest: true })
  let lines: string[]
  beforeEach(async () => {
    lines = []
  })

  function open(env: Record<string, string> = {}) {
    const settings = groupSettings(loadConfig({ WORKSPACE_DIR: dir.path, ...env }, 'standalone')).worker.workspaces
    const log = createLog({ level: 'info', write: (line) => lines.push(line) })
    return openWorkspaces(settings, { sweeps: { storedMs: 0 }, log })
  }

  it('are plain folders by default, and kept in a store where one is named', async () => {
    const plain = await open()
    expect(plain.workspaces.kept).to.equal(undefined)
    await plain.close()
    const kept = await open(s3.env)
    expect(kept.workspaces.kept).to.be.an('object')
    await kept.close()
    expect(lines).to.deep.equal([])
    expect((await readdir(dir.path)).filter((name) => name !== '.clock')).to.deep.equal([])
  })

  it('D35: a store that ignores the conditions of writes is a wrong configuration', async () => {
    const server = createServer((_req, res) => res.setHeader('etag', '"1"').end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const failure = await open({ ...s3.env, WORKSPACE_STORE_ENDPOINT: endpoint }).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(ConfigError)
    expect(String(failure)).to.include('If-None-Match')
    server.close()
    server.closeAllConnections()
  })

  it('D35: a process starts without its store, and says in its log what the store has answered', async () => {
    const opened = await open({ ...s3.env, WORKSPACE_STORE_SECRET_KEY: 'other-secret-0123456789' })
    await opened.close()
    expect(lines.join()).to.include('SignatureDoesNotMatch').and.include('WORKSPACE_STORE')
    expect(lines.join()).to.not.include('other-secret')
  })
})
