import { chmod, mkdir, readdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { newToken } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

/** Opens the workspaces of one process. All that are opened in a test belong to one cluster. */
export type OpenWorkspaces = () => Promise<Workspaces>

/** The tests of folders that move from one process to another, which a shared folder and a store pass. */
export function workspacesContract(open: OpenWorkspaces): void {
  const tenant = tenantId('acme')
  let scope: string
  beforeEach(() => {
    scope = `s1.${newToken()}`
  })

  /** The path of the folder, with its files. */
  async function bring(to: Workspaces, of: TenantId = tenant): Promise<string> {
    const path = to.openKept(of, scope)
    await to.kept?.bring(of, scope)
    return path
  }
  async function leave(from: Workspaces): Promise<void> {
    await from.kept?.save(tenant, scope)
    from.release(tenant, scope)
  }
  async function write(path: string, name: string, text: string): Promise<void> {
    await mkdir(path, { recursive: true })
    await writeFile(join(path, name), text)
  }
  const isThere = (path: string) => stat(path).then(Boolean, () => false)

  it('a folder that was saved is whole at the next process: bytes, subfolders, modes, times and links', async () => {
    const [one, two] = [await open(), await open()]
    const path = await bring(one)
    await write(join(path, 'src/empty'), '.keep', '')
    await rm(join(path, 'src/empty/.keep'))
    await write(path, 'a b\n"ü.txt', 'text')
    await writeFile(join(path, 'src/bytes'), Buffer.from([0, 255, 10]))
    await write(path, 'run.sh', '#!/bin/sh')
    await chmod(join(path, 'run.sh'), 0o755)
    await chmod(join(path, 'src/bytes'), 0o400)
    await utimes(join(path, 'run.sh'), 1_000, 1_000)
    await chmod(join(path, 'src/empty'), 0o555)
    await symlink('../run.sh', join(path, 'src/link'))
    await symlink('src', join(path, 'folder-link'))
    await leave(one)
    const other = await bring(two)
    expect((await readdir(other)).sort()).to.deep.equal(['a b\n"ü.txt', 'folder-link', 'run.sh', 'src'])
    expect((await readdir(join(other, 'src'))).sort()).to.deep.equal(['bytes', 'empty', 'link'])
    expect(await readFile(join(other, 'a b\n"ü.txt'), 'utf8')).to.equal('text')
    expect([...(await readFile(join(other, 'src/bytes')))]).to.deep.equal([0, 255, 10])
    expect((await stat(join(other, 'run.sh'))).mode & 0o777).to.equal(0o755)
    expect((await stat(join(other, 'run.sh'))).mtimeMs).to.equal(1_000_000)
    expect((await stat(join(other, 'src/bytes'))).mode & 0o777).to.equal(0o400)
    expect((await stat(join(other, 'src/empty'))).mode & 0o777).to.equal(0o555)
    expect(await readlink(join(other, 'src/link'))).to.equal('../run.sh')
    expect(await readFile(join(other, 'folder-link/bytes'))).to.have.length(3)
  })

  it('what was changed, replaced and deleted is so everywhere, and back again', async () => {
    const [one, two] = [await open(), await open()]
    let path = await bring(one)
    for (const name of ['kept', 'changed', 'deleted', 'becomes-folder']) await write(path, name, 'first')
    await leave(one)
    path = await bring(two)
    await writeFile(join(path, 'changed'), 'other')
    await rm(join(path, 'deleted'))
    await rm(join(path, 'becomes-folder'))
    await write(join(path, 'becomes-folder'), 'in', 'x')
    await leave(two)
    path = await bring(one)
    expect((await readdir(path)).sort()).to.deep.equal(['becomes-folder', 'changed', 'kept'])
    expect(await readFile(join(path, 'changed'), 'utf8')).to.equal('other')
    expect(await readFile(join(path, 'becomes-folder/in'), 'utf8')).to.equal('x')
  })

  it('a folder that is removed is gone for all, and one that was not used costs nothing', async () => {
    const [one, two] = [await open(), await open()]
    await write(await bring(one), 'a', 'x')
    await leave(one)
    two.openKept(tenant, scope)
    await two.remove(tenant, scope)
    await one.remove(tenant, scope)
    const path = await bring(one)
    expect(await isThere(join(path, 'a'))).to.equal(false)
    await two.remove(tenant, `s2.${newToken()}`)
  })

  it('two tenants never meet, whatever their ids are', async () => {
    const one = await open()
    await write(await bring(one), 'a', 'x')
    await one.kept?.save(tenant, scope)
    const two = await open()
    for (const other of ['Acme', 'acme/..', '../acme', 'acme.', 'acmé'])
      expect(await isThere(join(await bring(two, other as TenantId), 'a')), other).to.equal(false)
  })

  it('folders of runs are for one process, and go with it', async () => {
    const one = await open()
    const path = one.open(tenant, `run_${'a'.repeat(32)}`)
    await write(path, 'a', 'x')
    expect(one.openCount).to.equal(1)
    await one.remove(tenant, `run_${'a'.repeat(32)}`)
    await until(async () => !(await isThere(path)), { what: 'the folder to be removed' })
    expect(one.openCount).to.equal(0)
  })
}
