import { access, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createMemoryPermissionStore } from '../../shared/broker/permissions/memory-store.ts'
import { DEFAULT_TENANT } from '../../shared/tenant.ts'
import { workspacePath } from '../../shared/tools/workspace/workspace.ts'
import { createDemoWorker } from '../support/demo-worker.ts'
import { until } from '../support/until.ts'

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

describe('workspaces', () => {
  it('D1.3 WORKSPACE_DIR: the folder of a session is removed with it, even when the session came from another worker', async () => {
    const root = await mkdtemp(join(tmpdir(), 'ae-workspaces-'))
    const { inbox, adopt } = createDemoWorker(createMemoryPermissionStore(), {}, { workspaceDir: root })
    const folder = workspacePath(root, DEFAULT_TENANT, 'moved')
    await mkdir(folder, { recursive: true })
    adopt({ id: 'moved', tenant: DEFAULT_TENANT, token: 'a1', createdAt: new Date().toISOString(), messages: [] })
    expect(await isThere(folder)).to.equal(true)
    await inbox.deleteSession(DEFAULT_TENANT, 'moved')
    await until(async () => !(await isThere(folder)), { what: 'the folder to be removed' })
    await rm(root, { recursive: true })
  })
})
