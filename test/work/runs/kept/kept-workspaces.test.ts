// Tests kept-folder.ts, manifest-store.ts, send.ts, transfer.ts and scan.ts: what a process does with its folders is seen at the store and at the next process.
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { AppError, hasKind } from '../../../../shared/kernel/errors.ts'
import { newToken } from '../../../../shared/kernel/ids.ts'
import { contentOf, readAll } from '../../../../shared/platform/objects/content.ts'
import type { Objects } from '../../../../shared/platform/objects/port.ts'
import { Gate } from '../../../../shared/work/runs/kept/gate.ts'
import { KeptFolder } from '../../../../shared/work/runs/kept/kept-folder.ts'
import { TooMuch } from '../../../../shared/work/runs/kept/scan.ts'
import { workspacesContract } from '../../../contract/workspaces.ts'
import { failureOf } from '../../../support/failure-of.ts'
import { listAll } from '../../../support/s3.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { suspended } from '../../../support/suspend.ts'
import { tenantId } from '../../../support/tenant.ts'
import { until } from '../../../support/until.ts'
import { type Kept, useKept } from './setup.ts'

const HOUR_MS = 3_600_000

describe('workspaces that a store keeps', () => {
  const { s3, open, took } = useKept()
  workspacesContract(open)

  const tenant = tenantId('acme')
  let scope: string
  let objects: Objects
  beforeEach(() => {
    scope = `s1.${newToken()}`
  })
  before(() => {
    objects = s3.open()
  })
  after(() => objects.close())

  async function bring(to: Kept): Promise<string> {
    await to.kept.bring(tenant, scope)
    const path = to.openKept(tenant, scope)
    await mkdir(path, { recursive: true })
    return path
  }
  const save = (of: Kept) => of.kept.save(tenant, scope)
  const keysOf = async (prefix: string) => (await listAll(objects, prefix)).map(({ key }) => key)
  it('D35: only what has changed is sent, and nothing when nothing has, or when no file was used', async () => {
    const one = await open()
    one.openKept(tenant, scope)
    took()
    await save(one)
    expect(took(), 'it was not brought').to.deep.equal([])
    const path = await bring(one)
    expect(took()).to.deep.equal(['find folders', 'write folders'])
    for (const [name, text] of [
      ['a', 'same'],
      ['b', 'same'],
      ['c', 'c'],
    ] as const)
      await writeFile(join(path, name), text)
    await save(one)
    expect(took(), 'equal contents go once').to.deep.equal(['write files', 'write files', 'write folders'])
    await save(one)
    expect(took()).to.deep.equal([])
    await writeFile(join(path, 'c'), 'd')
    await save(one)
    await until(() => keysOf(`files/acme/${scope}/`).then((keys) => keys.length === 2), {
      what: 'the old content to go',
    })
    expect(took()).to.deep.equal(['write files', 'write folders', 'delete files'])
    await writeFile(join(path, 'a'), 'c') // A content that was deleted a moment ago.
    await save(one)
    one.release(tenant, scope)
    const two = await open()
    expect(await readFile(join(await bring(two), 'a'), 'utf8')).to.equal('c')
  })

  it('D35: a change right after a save is seen, although time and size stay the same', async () => {
    const one = await open()
    const path = await bring(one)
    await writeFile(join(path, 'a'), 'one')
    await utimes(join(path, 'a'), 1_000, 1_000)
    await save(one)
    await writeFile(join(path, 'a'), 'two')
    await utimes(join(path, 'a'), 1_000, 1_000)
    await save(one)
    const two = await open()
    expect(await readFile(join(await bring(two), 'a'), 'utf8')).to.equal('two')
  })

  it('D35: a process from which another has taken the folder over writes nothing more, however it wakes up', async () => {
    const [frozen, next] = [await open(), await open()]
    const old = await bring(frozen)
    await writeFile(join(old, 'a'), 'first')
    await save(frozen)
    const path = await bring(next)
    await writeFile(join(old, 'a'), 'late')
    expect(hasKind(await failureOf(save(frozen)), 'conflict')).to.equal(true)
    await save(frozen) // It has given the folder up.
    expect(await readFile(join(path, 'a'), 'utf8')).to.equal('first')
    await writeFile(join(path, 'b'), 'new')
    await save(next)
    frozen.release(tenant, scope)
    const third = await bring(await open())
    expect((await readdir(third)).sort()).to.deep.equal(['a', 'b'])
    expect(await readFile(join(third, 'a'), 'utf8')).to.equal('first')
  })

  it('D35: what a former process deletes late is no content of its successor', async () => {
    const mayDelete = Promise.withResolvers<void>()
    const store = s3.open()
    const former = await open({
      objects: { ...store, delete: (key) => mayDelete.promise.then(() => store.delete(key)) },
    })
    const old = await bring(former)
    for (const text of ['same', 'other']) {
      await writeFile(join(old, 'a'), text)
      await save(former)
    }
    const next = await open()
    await writeFile(join(await bring(next), 'a'), 'same')
    await save(next)
    mayDelete.resolve()
    await former.kept.close() // It waits for what is under way.
    expect(await readFile(join(await bring(await open()), 'a'), 'utf8')).to.equal('same')
  })

  it('D35: a deletion that is carried out late, after it was given up, deletes nothing that was written since', async () => {
    const late: string[] = []
    const store = s3.open()
    const giveUp = (key: string) => Promise.reject(new AppError('unavailable', `no answer for ${late.push(key)}`))
    const one = await open({ objects: { ...store, delete: giveUp } })
    const path = await bring(one)
    for (const text of ['same', 'other', 'same']) {
      await writeFile(join(path, 'a'), text)
      await save(one)
    }
    one.release(tenant, scope)
    const two = await open()
    for (const key of late) await store.delete(key)
    expect(late).to.have.length(2)
    expect(await readFile(join(await bring(two), 'a'), 'utf8')).to.equal('same')
  })

  it('D35: of processes that bring a folder at the same time one has it in the end', async () => {
    const first = await open()
    await writeFile(join(await bring(first), 'a'), 'x')
    await save(first)
    const rivals = [await open(), await open(), await open()]
    const paths = await Promise.all(rivals.map(bring))
    await Promise.all(paths.map((path, i) => writeFile(join(path, 'by'), String(i))))
    const saved = await Promise.allSettled(rivals.map(save))
    expect(saved.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
    const winner = saved.findIndex(({ status }) => status === 'fulfilled')
    expect(await readFile(join(await bring(await open()), 'by'), 'utf8')).to.equal(String(winner))
  })

  it('D5.2: links that lead out are not kept, and what lies behind a link is not sent', async () => {
    const one = await open()
    const path = await bring(one)
    await symlink('/etc', join(path, 'out'))
    await symlink('../../other', join(path, 'up'))
    await mkdir(join(path, 'in'))
    await symlink('../../..', join(path, 'in/up'))
    await symlink('in', join(path, 'fine'))
    await save(one)
    expect((await readdir(await bring(await open()))).sort()).to.deep.equal(['fine', 'in'])
    expect(await keysOf(`files/acme/${scope}/`)).to.deep.equal([])
  })

  it('D5.2: a manifest that names something outside of the folder is refused, and nothing is written', async () => {
    const owner = 'a'.repeat(16)
    const file = { mode: 0o600, mtimeMs: 0, bytes: 1, sha256: 'b'.repeat(64), object: `${owner}/1-${'b'.repeat(64)}` }
    const base = { format: 1, owner, revision: 1, tenant, scope, folders: [], files: [], links: [] }
    for (const wrong of [
      { files: [{ ...file, path: '../out' }] },
      { files: [{ ...file, path: '/tmp/out' }] },
      { files: [{ ...file, path: 'a', object: '../../other' }] },
      { files: [{ ...file, path: 'a', packed: { at: 5, of: 5 } }] },
      { files: [{ ...file, path: 'a\udc80/../b' }] },
      { files: [{ ...file, path: 'a\ud800' }] },
      { folders: [{ path: 'a/../../b', mode: 0o700 }] },
      { links: [{ path: 'a', target: '../b' }] },
      { links: [{ path: 'a', target: '/b' }] },
      { format: 3 },
    ]) {
      await objects.write(`folders/acme/${scope}`, contentOf(JSON.stringify({ ...base, ...wrong })))
      const one = await open()
      expect(hasKind(await failureOf(one.kept.bring(tenant, scope)), 'unavailable')).to.equal(true)
      expect(await readdir(join(one.dir, (await readdir(one.dir))[0] ?? ''))).to.deep.equal([])
    }
    await objects.delete(`folders/acme/${scope}`)
  })

  it('a folder with too many files, or too much in them, is not sent, and is as soon as it fits again', async () => {
    const one = await open({ limits: { maxBytes: 100, maxFiles: 3 } })
    const path = await bring(one)
    await writeFile(join(path, 'a'), 'x'.repeat(101))
    expect(await failureOf(save(one))).to.be.instanceOf(TooMuch)
    await truncate(join(path, 'a'), 100)
    await save(one)
    for (const name of ['b', 'c', 'd']) await writeFile(join(path, name), '')
    expect(await failureOf(save(one))).to.be.instanceOf(TooMuch)
    await rm(join(path, 'd'))
    await save(one)
    expect(await readdir(await bring(await open()))).to.have.length(3)
  })

  it('D35: while the store does not answer files are not said to be safe; they are stored when it is back', async () => {
    const one = await open()
    const path = await bring(one)
    await s3.server.kill('SIGSTOP')
    await suspended(s3.server.pid)
    await writeFile(join(path, 'a'), 'x')
    const failure = failureOf(save(one))
    const stranger = await open()
    expect(hasKind(await failureOf(stranger.kept.bring(tenant, scope)), 'unavailable')).to.equal(true)
    expect(hasKind(await failure, 'unavailable')).to.equal(true)
    await s3.server.kill('SIGCONT')
    const isSaved = async () => {
      const found = await objects.find(`folders/acme/${scope}`)
      return found && (await readAll(found.body, 10_000)).includes('"path":"a"')
    }
    await until(isSaved, { what: 'the file to be stored', everyMs: 50 })
    expect(await readdir(await bring(await open()))).to.deep.equal(['a'])
  })

  it('a file of several megabytes, which is streamed, is whole, and a damaged object is no file', async () => {
    const one = await open()
    const bytes = Buffer.alloc(3_000_000, 'abcdefg')
    await writeFile(join(await bring(one), 'large'), bytes)
    await save(one)
    const two = await open()
    expect(await readFile(join(await bring(two), 'large'))).to.deep.equal(bytes)
    const [key = ''] = await keysOf(`files/acme/${scope}/`)
    await objects.write(key, contentOf('damaged'))
    const three = await open()
    expect(hasKind(await failureOf(three.kept.bring(tenant, scope)), 'unavailable')).to.equal(true)
    await objects.delete(key)
    expect(hasKind(await failureOf(three.kept.bring(tenant, scope)), 'unavailable')).to.equal(true)
  })

  it('a process that closes has stored what it had, and leaves nothing on its disk', async () => {
    const one = await open()
    await writeFile(join(await bring(one), 'a'), 'x')
    await save(one)
    await one.kept.close()
    expect(await readdir(one.dir)).to.deep.equal([])
  })

  it('others of the machine cannot read them', async () => {
    const one = await open()
    await writeFile(join(await bring(one), 'a'), 'x')
    await save(one)
    expect((await stat(await bring(await open()))).mode & 0o777).to.equal(0o700)
  })

  it('a folder that is left twice has stored what it had before it is removed', async () => {
    const store = s3.open()
    let isAway = true
    const write: Objects['write'] = async (...args) => {
      if (isAway && args[0].startsWith('files/')) throw new AppError('unavailable', 'away')
      return store.write(...args)
    }
    const one = await open({ objects: { ...store, write } })
    await writeFile(join(await bring(one), 'a'), 'x')
    await failureOf(save(one))
    isAway = false
    one.release(tenant, scope)
    one.openKept(tenant, scope)
    one.release(tenant, scope)
    await one.kept.close()
    expect(await readdir(await bring(await open()))).to.deep.equal(['a'])
  })

  it('a folder that is in use is shown to the store, whether its files are here or not', async () => {
    const writtenBy = async (owner: { touch(ms: number): Promise<void> }) => {
      const before = await tagOf()
      await owner.touch(0)
      return (await tagOf()) !== before
    }
    const tagOf = async () => {
      const found = await objects.find(`folders/acme/${scope}`)
      return found && (await readAll(found.body, 10_000)) && found.tag
    }
    const folder = async () => {
      const gate = new Gate(2)
      const store = s3.open()
      const path = join((await open()).dir, 'own')
      return new KeptFolder({ tenant, scope, path }, `acme/${scope}`, {
        objects: store,
        limits: { maxBytes: 9, maxFiles: 9 },
        gate,
        log: SILENT_LOG,
      })
    }
    const [one, two] = [await folder(), await folder()]
    expect(await writtenBy(one), 'there is none').to.equal(false)
    await one.bring()
    await mkdir(one.identity.path)
    await writeFile(join(one.identity.path, 'a'), 'x')
    await one.save()
    expect(await writtenBy(one)).to.equal(true)
    await one.touch(HOUR_MS)
    await writeFile(join(one.identity.path, 'a'), 'y')
    await one.save()
    expect(await writtenBy(two), 'an adopted session').to.equal(true)
    expect(hasKind(await failureOf(one.touch(0)), 'conflict')).to.equal(true)
    await two.bring()
    expect(await readFile(join(two.identity.path, 'a'), 'utf8')).to.equal('y')
    await two.remove()
  })

  describe('that nobody uses', () => {
    /** The store as it is seen `ms` later. */
    const aged = (ms: number): Objects => {
      const store = s3.open()
      return {
        ...store,
        async *list(prefix) {
          for await (const each of store.list(prefix)) yield { ...each, ageMs: each.ageMs + ms }
        },
      }
    }
    const isKept = async () => (await keysOf('')).some((key) => key.includes(scope))
    async function leaveBehind(): Promise<void> {
      const dead = await open()
      await writeFile(join(await bring(dead), 'a'), 'x')
      await save(dead)
    }

    it('are removed an hour after their process was seen for the last time, of stored sessions when these are over', async () => {
      await leaveBehind()
      await (await open({ objects: aged(HOUR_MS / 2) })).sweep()
      await (await open({ objects: aged(2 * HOUR_MS), sweeps: { storedMs: 2 * HOUR_MS } })).sweep()
      await (await open({ objects: aged(9 * HOUR_MS), sweeps: { isPlanOver: async () => true } })).sweep()
      expect(await isKept()).to.equal(true)
      await (await open({ objects: aged(4 * HOUR_MS), sweeps: { storedMs: 2 * HOUR_MS } })).sweep()
      expect(await isKept()).to.equal(false)
    })

    it('of plans stay until the plan has ended', async () => {
      scope = `run_${'0'.repeat(8)}${newToken()}${'a'.repeat(8)}`
      await leaveBehind()
      const asked: string[] = []
      const sweeper = (isOver: boolean) =>
        open({
          objects: aged(2 * HOUR_MS),
          sweeps: { isPlanOver: async (of, id) => asked.push(`${of} ${id}`) > 0 && isOver },
        })
      await (await sweeper(false)).sweep()
      await (await open({ objects: aged(9 * HOUR_MS) })).sweep()
      expect(await isKept()).to.equal(true)
      await (await sweeper(true)).sweep()
      expect(await isKept()).to.equal(false)
      expect(new Set(asked)).to.deep.equal(new Set([`${tenant} ${scope}`]))
    })

    it('are swept on the disk of their machine, too', async () => {
      const one = await open({ log: SILENT_LOG })
      const left = `process-${newToken()}`
      const at = (Date.now() - 2 * HOUR_MS) / 1_000
      for (const path of [left, 'notes'].map((name) => join(one.dir, name))) {
        await mkdir(path)
        await utimes(path, at, at)
      }
      await one.sweep()
      expect(await readdir(one.dir))
        .to.have.length(3)
        .and.to.include('notes')
        .and.not.include(left)
    })
  })
})
