import { access, mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { succeed, type ToolBox } from '../../shared/agent/tools/port.ts'
import { sessionFolder, workspacePath } from '../../shared/agent/tools/workspace/workspace.ts'
import { CursorStream } from '../../shared/cluster/journal/cursor-stream.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { createWorkspaces, type Workspaces } from '../../shared/work/runs/workspaces.ts'
import { createDemoWorker, NO_CLAIMS } from '../support/demo-worker.ts'
import { ALL_KEPT } from '../support/kept-files.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const TOKENS = ['0'.repeat(16), '1'.repeat(16)] as const
const HOUR_MS = 3_600_000

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** One tool, which writes a file into the workspace and returns what was there before. */
const toolBox: ToolBox = (() => {
  const tool = {
    name: 'Note',
    description: 'writes a file',
    inputSchema: {},
    defaultPolicy: 'allow',
    describe: () => 'Note wants to run',
    async run(_input: unknown, { workspace }: { workspace: string }) {
      await mkdir(workspace, { recursive: true })
      const before = await readdir(workspace)
      await writeFile(join(workspace, 'note.txt'), 'x')
      return succeed(`before: ${before.join()}`)
    },
  } as const
  return { tools: [tool], find: () => tool, policyOf: () => 'allow', problemWith: async () => undefined }
})()

describe('workspaces', () => {
  const root = useTempFolder({ perTest: true })
  let workspaces: Workspaces
  beforeEach(async () => {
    workspaces = createWorkspaces(root.path)
  })

  const openWorker = (isOwner = true, idleMs = 60_000) =>
    createDemoWorker(
      createMemoryPermissionStore(),
      { sessionIdleMs: idleMs },
      { workspaces, toolBox, claims: { ...NO_CLAIMS, release: async () => isOwner } },
    )
  const folderOf = (token: string) => workspacePath(root.path, TENANT, sessionFolder('s1', token))
  /** Lets the session write its file, and returns the text of the run. */
  const note = async ({ inbox }: ReturnType<typeof openWorker>) => {
    const runId = newId('run')
    await inbox.sendMessage(TENANT, runId, { sessionId: 's1', prompt: '/tool Note {}' })
    void inbox.acceptRun(TENANT, runId)
    let text = ''
    for await (const chunk of new CursorStream(inbox.followRun(TENANT, runId, 0))) text += Buffer.from(chunk.text)
    return text
  }
  const state = (token: string) => ({
    id: 's1',
    tenant: TENANT,
    token,
    createdAt: new Date().toISOString(),
    messages: [],
  })

  it('D1.3 WORKSPACE_DIR: the folder of a session is removed with it, even when the session came from another worker', async () => {
    const { inbox, adopt } = openWorker()
    await mkdir(folderOf(TOKENS[0]), { recursive: true })
    adopt(state(TOKENS[0]))
    expect(await isThere(folderOf(TOKENS[0]))).to.equal(true)
    await inbox.deleteSession(TENANT, 's1')
    await until(async () => !(await isThere(folderOf(TOKENS[0]))), { what: 'the folder to be removed' })
  })

  it('a session that is deleted and created again at once never meets the files of the first one', async () => {
    const worker = openWorker()
    for (const token of TOKENS) {
      void worker.inbox.createSession(TENANT, 's1', token)
      expect(await note(worker))
        .to.include('before: ')
        .and.not.include('note.txt')
      expect(await isThere(join(folderOf(token), 'note.txt'))).to.equal(true)
      if (token === TOKENS[0]) await worker.inbox.deleteSession(TENANT, 's1')
    }
    await until(async () => !(await isThere(folderOf(TOKENS[0]))), { what: 'the first folder to be removed' })
    expect(await isThere(join(folderOf(TOKENS[1]), 'note.txt'))).to.equal(true)
    await worker.inbox.deleteSession(TENANT, 's1')
  })

  it('a session that was left behind by a worker that died leaves no files to a new session of its id', async () => {
    await mkdir(folderOf(TOKENS[0]), { recursive: true })
    await writeFile(join(folderOf(TOKENS[0]), 'note.txt'), 'secret')
    const worker = openWorker()
    void worker.inbox.createSession(TENANT, 's1', TOKENS[1])
    expect(await note(worker)).to.not.include('note.txt')
    await worker.inbox.deleteSession(TENANT, 's1')
  })

  it('a copy of a session that another worker owns leaves the folder when it is idle for too long', async () => {
    const worker = openWorker(false, 200)
    worker.keep(worker.adopt(state(TOKENS[0])))
    await note(worker)
    await until(() => [...worker.sessions()].length === 0, { what: 'the copy to be dropped' })
    expect(await isThere(join(folderOf(TOKENS[0]), 'note.txt'))).to.equal(true)
    worker.adopt(state(TOKENS[1])).retire()
    expect(workspaces.openCount, 'the copy’s folder is not counted any more').to.equal(1)
  })

  it('a worker keeps no record of the folders of sessions that it has handed over, or lost', async () => {
    const worker = openWorker()
    for (const drop of [() => worker.release([...worker.sessions()][0] as never), () => worker.abortAll()]) {
      worker.adopt(state(TOKENS[0]))
      expect(workspaces.openCount).to.equal(1)
      drop()
      expect(workspaces.openCount).to.equal(0)
    }
  })

  it('D35: a session is held for another worker when its run has ended and its files are stored', async () => {
    const saved = Promise.withResolvers<void>()
    const folders: string[] = []
    const kept = { ...ALL_KEPT, save: (_tenant: string, scope: string) => (folders.push(scope), saved.promise) }
    workspaces = { ...createWorkspaces(root.path), kept }
    const { inbox, sessions } = openWorker()
    await inbox.createSession(TENANT, 's1', TOKENS[0])
    const [session] = [...sessions()]
    const held = session?.hold().then(() => 'held')
    expect(await Promise.race([held, new Promise((resolve) => setImmediate(resolve, 'waiting'))])).to.equal('waiting')
    saved.resolve()
    expect(await held).to.equal('held')
    expect(folders).to.deep.equal([sessionFolder('s1', TOKENS[0])])
    await inbox.deleteSession(TENANT, 's1')
  })

  describe('that nobody uses', () => {
    const make = async (name: string, ageMs: number) => {
      const path = join(root.path, TENANT, name)
      await mkdir(path, { recursive: true })
      await writeFile(join(path, 'a.txt'), 'x')
      const at = (Date.now() - ageMs) / 1000
      await utimes(path, at, at)
      return name
    }
    const names = async () => (await readdir(join(root.path, TENANT))).sort()

    it('are removed an hour after their process has marked them for the last time', async () => {
      const run = `run_${'a'.repeat(32)}`
      const old = [await make(`s1.${TOKENS[0]}`, 2 * HOUR_MS), await make(run, 2 * HOUR_MS)]
      await make(`s1.${TOKENS[1]}`, HOUR_MS / 2)
      expect(await names()).to.include.members(old)
      await workspaces.sweep()
      expect(await names()).to.deep.equal([`s1.${TOKENS[1]}`])
    })

    it('D32: of sessions that are stored stay for as long as a session is, those of runs do not', async () => {
      const kept = await make(`s1.${TOKENS[0]}`, 2 * HOUR_MS)
      await make(`s1.${TOKENS[1]}`, 4 * HOUR_MS)
      await make(`run_${'a'.repeat(32)}`, 2 * HOUR_MS)
      await createWorkspaces(root.path, { storedMs: 2 * HOUR_MS }).sweep()
      expect(await names()).to.deep.equal([kept])
    })

    it('stay while this process or another has them open', async () => {
      const mine = await make(`s1.${TOKENS[0]}`, 2 * HOUR_MS)
      workspaces.open(TENANT, mine)
      await workspaces.sweep()
      await createWorkspaces(root.path).sweep()
      expect(await names()).to.deep.equal([mine])
    })

    for (const [where, shiftMs] of [
      ['ahead', 2 * HOUR_MS],
      ['behind', -2 * HOUR_MS],
    ] as const)
      it(`stay and go by the clock of the file system when the clock of a worker is two hours ${where}`, async () => {
        const mine = await make(`s1.${TOKENS[0]}`, 2 * HOUR_MS)
        const ofOther = await make(`s1.${TOKENS[1]}`, HOUR_MS / 2)
        const left = await make(`run_${'a'.repeat(32)}`, 2 * HOUR_MS)
        workspaces.open(TENANT, mine)
        await withClock(shiftMs, () => workspaces.sweep())
        expect(await names())
          .to.include.members([mine, ofOther])
          .and.not.include(left)
        await createWorkspaces(root.path).sweep()
        expect(await names()).to.include(mine)
      })

    it('stay when they are those of plans and flows, or were not made by a worker', async () => {
      const others = ['notes', `run_${'0'.repeat(8)}${'a'.repeat(24)}`, `x.${'g'.repeat(16)}`, 'run_1']
      for (const name of others) await make(name, 1_000 * HOUR_MS)
      await workspaces.sweep()
      expect(await names()).to.deep.equal([...others].sort())
    })

    it('are no error when there is no folder at all', async () => {
      await createWorkspaces(join(root.path, 'none')).sweep()
    })
  })
})

/** Runs `work` with this process's wall clock shifted. */
async function withClock(shiftMs: number, work: () => Promise<void>): Promise<void> {
  const Real = globalThis.Date
  globalThis.Date = class extends Real {
    static override now = () => Real.now() + shiftMs
    constructor(...args: [] | [number]) {
      super(args[0] ?? Real.now() + shiftMs)
    }
  } as DateConstructor
  try {
    await work()
  } finally {
    globalThis.Date = Real
  }
}
