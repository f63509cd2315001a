import { Redis } from 'ioredis'
import { type AgentEvent, isTerminal } from '../../../../shared/kernel/events.ts'
import { Player, type Sink } from '../source/player.ts'
import { readScript } from '../source/script.ts'
import { answerCalls, readOptions } from './answer.ts'
import { type JsonCommand, TO_GATEWAY, TO_WORKER } from './json-wire.ts'

/** Events in transit: enough for any throughput, and far below Redis's limit for a subscriber. */
const MAX_IN_TRANSIT = 8_000

/** The worker of the JSON relay: one PUBLISH with a JSON envelope for each event. */
const { redisUrl } = readOptions()
const [commands, listener] = [new Redis(redisUrl), new Redis(redisUrl)]
const player = new Player()
const stops = new Map<number, AbortController>()
const credit = { sent: 0, received: 0, wake: new Set<() => void>() }

listener.on('message', (_channel: string, text: string) => {
  const command = JSON.parse(text) as JsonCommand
  if (command.type === 'start') return start(command.stream, command.prompt)
  if (command.type === 'stop') return stops.get(command.stream)?.abort()
  credit.received = command.count
  const woken = [...credit.wake]
  credit.wake.clear()
  for (const wake of woken) wake()
})
await listener.subscribe(TO_WORKER)
answerCalls({ port: 0 })

function start(stream: number, prompt: string): void {
  const stop = new AbortController()
  stops.set(stream, stop)
  player.play(readScript(prompt), sinkOf(stream), stop.signal)
}

function sinkOf(stream: number): Sink {
  let seq = 0
  return {
    append(event: AgentEvent) {
      credit.sent++
      commands.publish(TO_GATEWAY, JSON.stringify({ stream, seq: ++seq, event })).catch(() => {})
      if (isTerminal(event)) stops.delete(stream)
    },
    get isBackpressured() {
      return credit.sent - credit.received > MAX_IN_TRANSIT
    },
    waitForDrain: () => new Promise((resolve) => credit.wake.add(resolve)),
  }
}
