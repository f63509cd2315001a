import { registerHooks } from 'node:module'

/** A bug for the simulation to find: in this file, `put` stands instead of `find`. */
export type PlantedBug = { name: string; edits: readonly { file: string; find: string; put: string }[] }

const RELAY = 'shared/cluster/relay'

/** Bugs of the kinds that were found in the product, by reviews and by this simulation. */
export const PLANTED: readonly PlantedBug[] = [
  one(
    'calls are sent again under a new epoch',
    `${RELAY}/broker.ts`,
    'this.#calls.close()\n    this.streams.fail',
    'this.streams.fail',
  ),
  one('the fence forgets', 'shared/work/runs/fence-guard.ts', 'const isHeld = fence.isHeld()', 'const isHeld = true'),
  one(
    'a lease lasts longer than the others wait',
    'shared/cluster/members/lease.ts',
    'const FENCE_MS = 3_000',
    'const FENCE_MS = 8_000',
  ),
  one(
    'an evicted worker goes on with its runs',
    `${RELAY}/worker.ts`,
    'onEvicted: () => this.#worker.abortAll()',
    'onEvicted: () => {}',
  ),
  one(
    'a late offer replaces a newer session',
    `${RELAY}/worker.ts`,
    'if (await this.#claims.isReplaced(state)) throw goneSession()',
    '',
  ),
  one(
    'a session is adopted without its claim',
    `${RELAY}/worker.ts`,
    'if (!(await this.#claims.takeOver(session, from))) {',
    'if (false as boolean) {',
  ),
  one(
    'an offer that was taken back still holds',
    'shared/cluster/owners/held-claims.ts',
    'const to = { ...from, token: newToken() }',
    'const to = from',
  ),
  one('claims are not restored', `${RELAY}/worker.ts`, 'this.#claims.claimAll()', ''),
  {
    name: 'a removed process comes back under its epoch',
    edits: [
      { file: 'shared/cluster/members/member-watch.ts', find: 'if (isBack) this.#onBack(change.epoch)', put: '' },
      {
        file: 'shared/cluster/members/member-watch.ts',
        find: 'if (peers.isLost(epoch)) this.#back.add(epoch)',
        put: '{}',
      },
    ],
  },
  one(
    'a process acts before the others have seen it again',
    `${RELAY}/membership.ts`,
    'if (requestedAt.monotonic < this.#mayActFrom) return',
    '',
  ),
  one(
    'a heartbeat shows no loss',
    `${RELAY}/streams/relayed-stream.ts`,
    'if (isBehind(this.#position, position) && !this.#isOver) this.#repairLoss()',
    '',
  ),
  one(
    'frames are taken in any order',
    `${RELAY}/streams/relayed-stream.ts`,
    'if (isBehind(this.#position, frames.from) || isBehind(frames.from, this.#position)) {',
    'if (false as boolean) {',
  ),
  one('a call that was sent again is made again', `${RELAY}/wire/calls.ts`, 'if (known) return known.answer', ''),
  one(
    'two replies decide one request',
    'shared/cluster/permissions/memory-store.ts',
    'if (entry.decided) return { isWon: false, state: entry.decided.state }',
    '',
  ),
  one(
    'a session that is only offered is claimed',
    'shared/cluster/owners/held-claims.ts',
    'if (!this.#offered.has(session)) this.#claimInBackground(session)',
    'this.#claimInBackground(session)',
  ),
  one(
    'an eviction is not considered again',
    'shared/cluster/members/member-watch.ts',
    'if (!steadiness.isSteady()) return // A renewal',
    '// A renewal',
  ),
  one('a run begins before it is accepted', 'shared/work/runs/run.ts', 'if (this.#held) await this.#held.promise', ''),
  one(
    'a drain does not hand over',
    `${RELAY}/handoff.ts`,
    "await this.#call(to, packCall('adoptSession', [state]))",
    'return false',
  ),
  one(
    'a run that is left to another worker ends',
    'services/worker/ownership.ts',
    'runs.release(run)',
    "run.cancel('worker_lost')",
  ),
  one(
    'nobody says where a run goes on',
    'services/worker/sessions/go-on.ts',
    'await claims?.moved(tenant, runIds)',
    '{}',
  ),
  one(
    'a run that goes on leaves no numbers out',
    'shared/cluster/journal/journal.ts',
    'if (!this.#isEnded) this.#skipTo(reserved)',
    '',
  ),
  one(
    'a run that is left withdraws its permission requests',
    'services/worker/permission-requester.ts',
    'if (run.isAbandoned) return giveUp()',
    '',
  ),
]

function one(name: string, file: string, find: string, put: string): PlantedBug {
  return { name, edits: [{ file, find, put }] }
}

/** Changes the files of the product when they are loaded by this thread. Call it before they are. */
export function plant({ name, edits }: PlantedBug): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const own = edits.filter(({ file }) => url.endsWith(`/${file}`))
      if (own.length === 0) return loaded
      const source = own.reduce((text, { file, find, put }) => {
        if (!text.includes(find)) throw new Error(`${file} has no place for the bug '${name}' any more: ${find}`)
        return text.replace(find, put)
      }, String(loaded.source))
      return { ...loaded, source }
    },
  })
}
