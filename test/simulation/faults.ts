import type { Checker } from './checker.ts'
import type { Fleet } from './fleet.ts'
import type { Fault } from './plan.ts'
import type { Time } from './time.ts'

const DRAIN_MS = 5_000

/** Beside each other fault a drain cannot be expected to hand everything over. */
const HARMLESS = new Set<Fault['kind']>(['drain', 'add worker', 'wall clock'])

type Kind = Fault['kind']
type Of<K extends Kind> = Extract<Fault, { kind: K }>

/** Lets things go wrong. */
export class Faults {
  readonly #time: Time
  readonly #fleet: Fleet
  readonly #checker: Checker
  /** How many faults keep Redis away now. */
  #redisAway = 0
  /** How many faults hold the store. */
  #stalled = 0

  constructor({ time, fleet, checker }: { time: Time; fleet: Fleet; checker: Checker }) {
    this.#time = time
    this.#fleet = fleet
    this.#checker = checker
  }

  schedule(fault: Fault): void {
    if (fault.kind === 'Redis fails over') this.#replicate(fault)
    this.#in(fault.at, () => {
      if (!HARMLESS.has(fault.kind)) this.#fleet.isTroubledUntil(fault.at + ('forMs' in fault ? fault.forMs : 0))
      const happen = this.#happen[fault.kind] as (fault: Fault) => void
      happen(fault)
    })
  }

  readonly #happen: { [K in Kind]: (fault: Of<K>) => void } = {
    freeze: ({ forMs, ...place }) => {
      const owner = this.#fleet.pick(place)
      if (owner?.state !== 'running') return
      this.#say(`${owner.name} is frozen for ${forMs} ms`)
      this.#time.freeze(owner)
      this.#in(forMs, () => {
        this.#time.thaw(owner)
        this.#say(`${owner.name} goes on`)
      })
    },
    kill: ({ backAfterMs, ...place }) => {
      const owner = this.#fleet.pick(place)
      if (!owner) return
      this.#say(`${owner.name} is killed`)
      this.#fleet.kill(owner)
      this.#in(backAfterMs, () => (place.role === 'worker' ? this.#fleet.addWorker() : this.#fleet.addGateway()))
    },
    drain: ({ nth, backAfterMs }) => {
      const node = this.#fleet.pickToDrain(nth)
      if (!node) return
      this.#say(`${node.owner.name} drains`)
      node.drain(DRAIN_MS)
      this.#in(backAfterMs, () => this.#fleet.addWorker())
    },
    'add worker': () => this.#fleet.addWorker(),
    cut: ({ forMs, ...place }) => {
      const owner = this.#fleet.pick(place)
      if (!owner) return
      this.#say(`${owner.name} is cut off from Redis for ${forMs} ms`)
      this.#fleet.wire.setCut(owner, true)
      this.#in(forMs, () => this.#fleet.wire.setCut(owner, false))
    },
    'wall clock': ({ byMs, ...place }) => {
      const owner = this.#fleet.pick(place)
      if (!owner) return
      this.#say(`the wall clock of ${owner.name} is set by ${byMs} ms`)
      owner.wallAheadMs += byMs
    },
    'Redis away': ({ forMs }) => {
      this.#say(`Redis is away for ${forMs} ms`)
      this.#awayFor(forMs, () => {})
    },
    'Redis empty': ({ forMs }) => {
      this.#say(`Redis restarts empty in ${forMs} ms`)
      this.#awayFor(forMs, () => this.#fleet.loseKeys(Infinity, () => this.#fleet.cluster.loseKeys()))
    },
    'Redis fails over': ({ at, forMs, lagMs }) => {
      this.#say(`Redis fails: a replica that is ${lagMs} ms behind takes over in ${forMs} ms`)
      this.#awayFor(forMs, () => this.#fleet.loseKeys(at - lagMs, this.#promote))
    },
    'messages lost': ({ forMs, share }) => {
      this.#say(`${Math.round(share * 100)} % of the messages are lost for ${forMs} ms`)
      this.#set('lossy', share, forMs)
    },
    'commands doubled': ({ forMs, share }) => {
      this.#say(`${Math.round(share * 100)} % of the commands are sent again for ${forMs} ms`)
      this.#set('doubling', share, forMs)
    },
    'slow store': ({ forMs, slowMs }) => {
      this.#say(`a write to the store takes up to ${Math.round(slowMs)} ms for ${forMs} ms`)
      const { store } = this.#fleet
      store.slowMs = slowMs
      this.#in(forMs, () => {
        store.slowMs = store.usualMs
      })
    },
    'stalled store': ({ forMs }) => {
      this.#say(`the store stands still for ${forMs} ms`)
      this.#stalled++
      this.#fleet.store.isStalled = true
      this.#in(forMs, () => {
        if (--this.#stalled === 0) this.#fleet.store.isStalled = false
      })
    },
    'slow wires': ({ forMs, slowMs }) => {
      this.#say(`the wires take up to ${Math.round(slowMs)} ms for ${forMs} ms`)
      this.#set('slowMs', slowMs, forMs)
    },
  }

  /** Makes the replica the primary that was the last to be behind. */
  #promote = () => {}

  /** The replica has what Redis has some time before it fails. */
  #replicate({ at, lagMs }: Of<'Redis fails over'>): void {
    this.#in(at - lagMs, () => {
      this.#promote = this.#fleet.cluster.replicate()
    })
  }

  /** Takes Redis away. `onBack` changes its keys before anybody reaches it again. */
  #awayFor(ms: number, onBack: () => void): void {
    this.#redisAway++
    this.#fleet.wire.setRedisAway(true)
    this.#in(ms, () => {
      onBack()
      if (--this.#redisAway === 0) this.#fleet.wire.setRedisAway(false)
    })
  }

  #set(property: 'lossy' | 'doubling' | 'slowMs', value: number, forMs: number): void {
    const { wire } = this.#fleet
    const usual = wire.usual[property]
    wire[property] = value
    this.#in(forMs, () => {
      wire[property] = usual
    })
  }

  #in(ms: number, act: () => void): void {
    this.#time.after(this.#time.world, ms, act)
  }

  #say(what: string): void {
    this.#checker.say(what)
  }
}
