// Tests that a folder is at the next process as it was: names, times, permissions, and many small files.
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { newToken } from '../../../../shared/kernel/ids.ts'
import type { Objects } from '../../../../shared/platform/objects/port.ts'
import { scanFolder } from '../../../../shared/work/runs/kept/scan.ts'
import { saveFiles } from '../../../../shared/work/runs/save-files.ts'
import type { SaveProgress } from '../../../../shared/work/runs/workspaces.ts'
import { listAll } from '../../../support/s3.ts'
import { tenantId } from '../../../support/tenant.ts'
import { until } from '../../../support/until.ts'
import { type Kept, useKept } from './setup.ts'

const NOBODY = 65_534

/** The superuser can read everything: does the work as another user, who owns the folder then. */
async function unprivileged<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const { getuid, seteuid } = process
  if (getuid?.() !== 0 || !seteuid) return work()
  for (const name of ['', 'closed', 'blind']) await chown(join(folder, name), NOBODY, NOBODY)
  for (let up = dirname(folder); up !== '/'; up = dirname(up)) await chmod(up, (await stat(up)).mode | 0o111)
  seteuid(NOBODY)
  try {
    return await work()
  } finally {
    seteuid(0)
  }
}

describe('the content of a workspace that a store keeps', () => {
  const { s3, open, took } = useKept()
  const tenant = tenantId('acme')
  const limits = { maxBytes: 10_000_000, maxFiles: 10_000 }
  let scope: string
  let objects: Objects
  before(() => {
    objects = s3.open()
  })
  after(() => objects.close())
  beforeEach(() => {
    scope = `s1.${newToken()}`
  })

  async function bring(to: Kept): Promise<string> {
    await to.kept.bring(tenant, scope)
    const path = to.openKept(tenant, scope)
    await mkdir(path, { recursive: true })
    return path
  }
  const save = (of: Kept) => of.kept.save(tenant, scope)
  const objectCount = async () => (await listAll(objects, `files/acme/${scope}/`)).length
  const bytes = (...parts: (string | number)[]) =>
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part))))

  it('D35.4: names that are not UTF-8 are kept, of files, folders and links, with what they hold', async () => {
    const one = await open()
    const path = await bring(one)
    const under = (...name: (string | number)[]) => bytes(`${path}/`, ...name)
    await mkdir(under('d', 0xff, 'é'))
    await writeFile(under('d', 0xff, 'é', '/', 'caf', 0xe9, '.txt'), 'latin')
    await writeFile(under(0x80), 'alone')
    await writeFile(under(0xc3), 'half a character')
    await writeFile(join(path, 'café.txt'), 'utf8')
    await symlink(bytes('d', 0xff, 'é/caf', 0xe9, '.txt'), under('link', 0xfe))
    await save(one)
    const two = await bring(await open())
    const there = (...name: (string | number)[]) => bytes(`${two}/`, ...name)
    expect(await readFile(there('d', 0xff, 'é/caf', 0xe9, '.txt'), 'utf8')).to.equal('latin')
    expect(await readFile(there('link', 0xfe), 'utf8'), 'through the link').to.equal('latin')
    expect((await readlink(there('link', 0xfe), 'buffer')).includes(0xe9)).to.equal(true)
    expect(await readFile(there(0x80), 'utf8')).to.equal('alone')
    expect(await readFile(there(0xc3), 'utf8')).to.equal('half a character')
    expect(await readdir(two))
      .to.have.length(5)
      .and.include('café.txt')
  })

  it('D35.4: times are kept to the millisecond, before 1970, too', async () => {
    const one = await open()
    const path = await bring(one)
    const times = [-86_400_000, -1_500, -1, 0, 1, 1_234_567_890_123, 1_700_000_000_001, 1_799_999_999_999]
    for (const [i, ms] of times.entries()) {
      await writeFile(join(path, `${i}`), `${i}`)
      const at = String((ms + 0.4) / 1_000)
      await utimes(join(path, `${i}`), at, at)
    }
    const timesIn = (folder: string) =>
      Promise.all(times.map(async (_ms, i) => Math.floor((await stat(join(folder, `${i}`))).mtimeMs)))
    expect(await timesIn(path), 'what the test has made').to.deep.equal(times)
    await save(one)
    const two = await open()
    expect(await timesIn(await bring(two))).to.deep.equal(times)
    took()
    await save(two)
    expect(
      took().filter((each) => each.startsWith('write')),
      'nothing has changed',
    ).to.deep.equal([])
  })

  it('D35.4: permissions are kept with set-user-ID, set-group-ID and the sticky bit', async () => {
    const one = await open()
    const path = await bring(one)
    const modes = { a: 0o4755, b: 0o2750, c: 0o6711, d: 0o1644, e: 0o400 }
    for (const [name, mode] of Object.entries(modes)) {
      await writeFile(join(path, name), name)
      await chmod(join(path, name), mode)
    }
    await mkdir(join(path, 'folder'))
    await chmod(join(path, 'folder'), 0o3775)
    await save(one)
    const two = await bring(await open())
    for (const [name, mode] of [...Object.entries(modes), ['folder', 0o3775] as const])
      expect((await stat(join(two, name))).mode & 0o7777, name).to.equal(mode)
  })

  it('D35.4: what cannot be read is left out by its name, a folder with what it holds, too', async () => {
    const path = await bring(await open())
    await mkdir(join(path, 'closed'))
    await mkdir(join(path, 'blind'))
    for (const name of ['closed/a', 'blind/b', 'c']) await writeFile(join(path, name), name)
    await chmod(join(path, 'closed'), 0o000)
    await chmod(join(path, 'blind'), 0o444) // Its names can be read, and nothing else.
    const scan = await unprivileged(path, () => scanFolder(path, limits))
    for (const name of ['closed', 'blind']) await chmod(join(path, name), 0o700)
    expect(scan?.leftOut.sort()).to.deep.equal(['blind/b', 'closed'])
    expect(scan?.files.map((file) => file.path)).to.deep.equal(['c'])
  })

  it('D35: many small files are stored in a few objects, and are at the next process as they were', async () => {
    const one = await open({ limits })
    const path = await bring(one)
    const names = Array.from({ length: 130 }, (_, i) => `f${i}`)
    const contentOf = (name: string) => `${name} ${'x'.repeat(10_000)}`
    for (const name of names) await writeFile(join(path, name), contentOf(name))
    await save(one)
    expect(await objectCount(), 'objects of 1 MiB').to.equal(2)
    took()
    const two = await open({ limits })
    const there = await bring(two)
    expect(took().length, 'requests to bring them').to.be.at.most(8)
    expect(await readdir(there)).to.have.length(names.length)
    for (const name of names) expect(await readFile(join(there, name), 'utf8')).to.equal(contentOf(name))
    await writeFile(join(there, 'f1'), 'changed')
    took()
    await save(two)
    expect(took(), 'one that changes goes alone').to.deep.equal(['write files', 'write folders'])
  })

  it('an object of many files whose greater part is not needed any more is replaced by one of those that are', async () => {
    const one = await open({ limits })
    const path = await bring(one)
    for (let i = 0; i < 100; i++) await writeFile(join(path, `f${i}`), `${i}`.repeat(50))
    await save(one)
    expect(await objectCount()).to.equal(1)
    for (let i = 0; i < 40; i++) await rm(join(path, `f${i}`))
    took()
    await save(one)
    expect(took(), 'more than half is needed').to.deep.equal(['write folders'])
    for (let i = 40; i < 70; i++) await rm(join(path, `f${i}`))
    await save(one)
    await until(async () => (await objectCount()) === 1, { what: 'the old object to go' })
    took()
    await save(one)
    expect(took(), 'nothing has changed').to.deep.equal([])
    const there = await bring(await open())
    expect(await readdir(there)).to.have.length(30)
    expect(await readFile(join(there, 'f99'), 'utf8')).to.equal('99'.repeat(50))
  })

  it('what was sent before the store failed is not sent again', async () => {
    let failing = false
    let writes = 0
    const counted = s3.open({ waitMs: 300 })
    const failingOnce: Objects = {
      ...counted,
      write(key, content, when) {
        if (key.startsWith('folders') && failing) return Promise.reject(new Error('away'))
        if (key.startsWith('files')) writes++
        return counted.write(key, content, when)
      },
    }
    const one = await open({ objects: failingOnce })
    const path = await bring(one)
    for (const name of ['a', 'b', 'c']) await writeFile(join(path, name), name)
    failing = true
    expect(await save(one).catch((cause: unknown) => cause)).to.be.instanceOf(Error)
    failing = false
    await save(one)
    expect(writes).to.equal(3)
    expect(await readdir(await bring(await open()))).to.have.length(3)
  })

  it('D35.2c: a process that goes on with a folder knows which changes of another one are missing there', async () => {
    let failing = false
    const counted = s3.open({ waitMs: 300 })
    const write: Objects['write'] = (key, content, when) =>
      failing ? Promise.reject(new AppError('unavailable', 'away')) : counted.write(key, content, when)
    const one = await open({ objects: { ...counted, write } })
    const path = await bring(one)
    for (const name of ['kept', 'changed']) await writeFile(join(path, name), 'old')
    await save(one)
    expect(await one.kept.unstored(tenant, scope)).to.deep.equal([])
    failing = true
    await writeFile(join(path, 'changed'), 'new')
    await utimes(join(path, 'changed'), 5, 5)
    await writeFile(join(path, 'added'), 'new')
    await save(one).catch(() => {})
    const unstored = await one.kept.unstored(tenant, scope)
    expect(unstored.map((file) => file.path).sort()).to.deep.equal(['added', 'changed'])
    const two = await open()
    expect((await two.kept.lacks(tenant, scope, unstored)).toSorted()).to.deep.equal(['added', 'changed'])
    const there = two.openKept(tenant, scope)
    await writeFile(join(there, 'changed'), 'new')
    await utimes(join(there, 'changed'), 5, 5)
    expect(await two.kept.lacks(tenant, scope, unstored), 'one is as it was').to.deep.equal(['added'])
    expect(await two.kept.lacks(tenant, scope, [])).to.deep.equal([])
  })

  it('D35.2b: the limit counts the time without progress, and the failure says how far the store has come', async () => {
    const steps = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
    const kept = {
      async save(_tenant: unknown, _scope: string, onProgress?: (progress: SaveProgress) => void) {
        for (const [stored, step] of steps.entries()) {
          await step.promise
          onProgress?.({ stored: stored + 1, files: 4 })
        }
        await new Promise(() => {})
      },
    }
    const begunAt = performance.now()
    const ended = saveFiles(kept, { tenant, scope }, 100).catch((cause: Error) => cause.message)
    for (const { resolve } of steps) await new Promise((done) => setTimeout(done, 50)).then(() => resolve())
    expect(await ended).to.equal('the store of the files has taken nothing for 0.1 s; 4 of 4 files are stored')
    expect(performance.now() - begunAt).to.be.above(250)
  })
})
