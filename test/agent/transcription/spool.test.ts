import { rmSync } from 'node:fs'
import { mkdir, readdir, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openSpool } from '../../../shared/agent/transcription/spool.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

const PID = 4_242
const UUID = '01234567-89ab-cdef-0123-456789abcdef'
const HOUR_MS = 3_600_000

describe('the folder of uploads', () => {
  const folder = useTempFolder({ perTest: true })
  let root: string
  beforeEach(() => void (root = join(folder.path, 'spool')))

  const open = (alive: readonly number[] = []) => openSpool(root, { pid: PID, isAlive: (pid) => alive.includes(pid) })
  const others = async (own: string) => (await readdir(root)).filter((name) => join(root, name) !== own)

  /** Makes the folder of another process, with an upload in it. */
  const leave = async (name: string, ageMs = 0) => {
    await mkdir(join(root, name), { recursive: true })
    await writeFile(join(root, name, 'upload'), 'x')
    const at = new Date(Date.now() - ageMs)
    await utimes(join(root, name), at, at)
    return name
  }

  it('is for its owner only, and so is the folder above it', async () => {
    const { dir } = await open()
    for (const path of [root, dir]) expect((await stat(path)).mode & 0o777).to.equal(0o700)
  })

  it('is deleted with everything in it when the process closes it', async () => {
    const { dir, close } = await open()
    await writeFile(join(dir, 'upload'), 'x')
    for (let times = 0; times < 2; times++) await close()
    expect(await readdir(root)).to.deep.equal([])
  })

  it('is another one at each start, so that two processes never share one', async () => {
    const [first, second] = [await open([PID]), await open([PID])]
    expect(first.dir).not.to.equal(second.dir)
  })

  it('D9.2: what a process left behind that is gone is deleted at the next start', async () => {
    await leave(`${hostname()}.77.${UUID}`)
    const { dir } = await open()
    expect(await others(dir)).to.deep.equal([])
  })

  it('what a process with the same pid left behind is deleted, since after a restart of a container the pid is the same', async () => {
    await leave(`${hostname()}.${PID}.${UUID}`)
    const { dir } = await open([PID])
    expect(await others(dir)).to.deep.equal([])
  })

  it('the folder of a process that is alive stays, however old it is', async () => {
    const kept = await leave(`${hostname()}.77.${UUID}`, 1_000 * HOUR_MS)
    const { dir } = await open([77])
    expect(await others(dir)).to.deep.equal([kept])
  })

  it('the folder of another machine stays for a day, whatever runs here under its pid', async () => {
    const kept = await leave(`other-host.77.${UUID}`, 23 * HOUR_MS)
    await leave(`old-host.77.${UUID}`, 25 * HOUR_MS)
    const { dir } = await open([77])
    expect(await others(dir)).to.deep.equal([kept])
  })

  it('folders that another process deletes meanwhile are none to delete', async () => {
    const gone = await leave(`${hostname()}.77.${UUID}`)
    const isAlive = () => {
      rmSync(join(root, gone), { recursive: true })
      return false
    }
    const { dir } = await openSpool(root, { pid: PID, isAlive })
    expect(await others(dir)).to.deep.equal([])
    const away = `other-host.77.${UUID}`
    await symlink(join(root, 'nowhere'), join(root, away))
    expect(await others((await open([PID])).dir)).to.include(away)
  })

  it('a host name with dots is the whole of it', async () => {
    const kept = await leave(`pod.1.ns.77.${UUID}`)
    const { dir } = await open()
    expect(await others(dir)).to.deep.equal([kept])
  })

  it('what is not named like a folder of this product stays', async () => {
    const names = [
      'lost+found',
      'notes.txt',
      `${hostname()}.77`,
      `${hostname()}.x.${UUID}`,
      `${hostname()}.77.${UUID}.tar`,
      `x\n${hostname()}.77.${UUID}`,
      UUID,
    ]
    for (const name of names) await leave(name, 1_000 * HOUR_MS)
    const { dir } = await open()
    expect((await others(dir)).toSorted()).to.deep.equal(names.toSorted())
  })
})
