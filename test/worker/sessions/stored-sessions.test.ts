import { expect } from 'chai'
import type { Session } from '../../../services/worker/sessions/session.ts'
import { Sessions } from '../../../services/worker/sessions/sessions.ts'
import { StoredSessions, type StoredSessionsDeps } from '../../../services/worker/sessions/stored-sessions.ts'
import { createSessionStore, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { useTestStore } from '../../support/test-store.ts'
import { limitsOf } from './session-setup.ts'

const IDLE_MS = 60_000
const RESUME_MS = 30_000
const keepNothing = async function* () {}

describe('the stored sessions of a worker', () => {
  const file = useTestStore()
  let store: SessionStore
  before(() => {
    store = createSessionStore(file.store, { idleMs: IDLE_MS, resumeMs: RESUME_MS })
  })

  /** A worker whose claims are those of `token`. `released` lists the sessions whose claims it gave back. */
  function openWorker({ token, ...changes }: { token?: string; owns?: boolean } & Partial<StoredSessionsDeps> = {}) {
    const { owns = true, ...deps } = changes
    const [opened, released]: [string[], string[]] = [[], []]
    const claims: SessionClaims = {
      find: async () => token,
      confirm: async () => owns,
      release: async ({ id }) => released.push(id) > 0,
      moved: async () => {},
    }
    const sessions = new Sessions(limitsOf(), async () => true, { keep: keepNothing })
    const stored = new StoredSessions({
      ...{ store, sessions, idleMs: IDLE_MS, claims: token === undefined ? undefined : claims },
      isDraining: () => false,
      onOpened: ({ id }) => void opened.push(id),
      log: SILENT_LOG,
      ...deps,
    })
    return { stored, sessions, opened, released }
  }
  const create = async (id: string, token = 'a1'): Promise<Session> => {
    const { stored, sessions } = openWorker({ token })
    const session = sessions.create({ id, tenant: TENANT, token })
    await stored.add(session)
    return session
  }
  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'done',
      (cause: { status: number; code?: string }) => cause.code ?? cause.status,
    )

  it('D32: one that another process has left is opened once, by the first command that names it', async () => {
    await create('left')
    const { stored, sessions, opened } = openWorker()
    const titles = await Promise.all(
      [1, 2].map(async () => stored.act(TENANT, 'left', () => sessions.get(TENANT, 'left').id)),
    )
    expect([titles, opened]).to.deep.equal([['left', 'left'], ['left']])
    expect(stored.act(TENANT, 'left', () => 'at once')).to.equal('at once')
  })

  it('D32.7a: no command for it is answered before its runs are found here', async () => {
    await create('opening')
    const onOpened = Promise.withResolvers<void>()
    const isOpening = Promise.withResolvers<void>()
    const { stored } = openWorker({
      onOpened() {
        isOpening.resolve()
        return onOpened.promise
      },
    })
    let answered = 0
    const ask = async () => stored.act(TENANT, 'opening', () => ++answered)
    const first = ask()
    await isOpening.promise
    const second = ask()
    await new Promise(setImmediate)
    expect(answered).to.equal(0)
    onOpened.resolve()
    expect(await Promise.all([first, second])).to.deep.equal([1, 2])
  })

  it('D32: its former owner finds the next place of the log taken', async () => {
    const former = await create('taken')
    const { stored, sessions } = openWorker()
    await stored.act(TENANT, 'taken', () => {})
    const own = sessions.get(TENANT, 'taken')
    expect([former.log?.nextSeq, own.log?.nextSeq]).to.deep.equal([1, 2])
    expect(await store.ownerAt(TENANT, { session_id: 'taken', workspace: own.workspace }, 1)).to.be.a('string')
  })

  it('one that no claim gives to this worker, or that is not stored, is not found; a claim for nothing is given back', async () => {
    await create('elsewhere')
    const nobody = openWorker({ token: 'a1', owns: false })
    expect(await codeOf(Promise.resolve(nobody.stored.act(TENANT, 'elsewhere', () => {})))).to.equal(404)
    const unknown = openWorker({ token: 'a1' })
    expect(await codeOf(Promise.resolve(unknown.stored.act(TENANT, 'nothing', () => {})))).to.equal(404)
    expect([nobody.released, unknown.released, nobody.opened]).to.deep.equal([['elsewhere'], ['nothing'], []])
  })

  it('a worker that shuts down opens none, and gives the claim back', async () => {
    const { workspace } = await create('late')
    const { stored, released, opened } = openWorker({ token: 'a1', isDraining: () => true })
    expect(await codeOf(Promise.resolve(stored.act(TENANT, 'late', () => {})))).to.equal('worker_draining')
    expect([released, opened]).to.deep.equal([['late'], []])
    expect(await store.ownerAt(TENANT, { session_id: 'late', workspace }, 1)).to.equal(undefined)
  })

  it("an id that is stored is refused, unless its claim is this creation's", async () => {
    await create('twice', 'a1')
    const again = openWorker()
    const other = again.sessions.create({ id: 'twice', tenant: TENANT, token: 'a2' })
    expect(await codeOf(again.stored.add(other))).to.equal(409)
    const owner = openWorker({ token: 'a2' })
    expect(
      await codeOf(owner.stored.add(owner.sessions.create({ id: 'twice', tenant: TENANT, token: 'a2' }))),
    ).to.equal('done')
  })

  it('D36.4: a refused creation is taken back, but not when another worker has opened it meanwhile', async () => {
    const [unused, used] = [await create('unused'), await create('used')]
    await openWorker().stored.act(TENANT, 'used', () => {})
    const { stored } = openWorker()
    await Promise.all([stored.takeBack(unused), stored.takeBack(used)])
    expect(await store.find(TENANT, 'unused')).to.equal(undefined)
    expect(await store.find(TENANT, 'used')).to.include({ session_id: 'used' })
  })

  it('what another worker owns by now is not deleted', async () => {
    const session = await create('moved')
    const next = openWorker()
    await next.stored.act(TENANT, 'moved', () => {})
    await openWorker({ token: 'other' }).stored.remove(session)
    expect(await store.find(TENANT, 'moved')).to.include({ session_id: 'moved' })
    await openWorker({ token: 'a1' }).stored.remove(session)
    expect(await store.find(TENANT, 'moved')).to.equal(undefined)
  })
})
