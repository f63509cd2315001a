import { createServer } from 'node:http'
import express, { type Response } from 'express'
import { Redis } from 'ioredis'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { isTerminal } from '../../../../shared/kernel/events.ts'
import { BARE_PATH } from '../target.ts'
import { answerCalls, readOptions } from './answer.ts'
import { openBare } from './bare.ts'
import { type JsonCommand, type JsonEvent, TO_GATEWAY, TO_WORKER } from './json-wire.ts'

const CREDIT_EVERY = 1_000

/** The gateway of the JSON relay: parses each event's envelope, renders its frame and writes it. */
const { redisUrl } = readOptions()
const [commands, listener] = [new Redis(redisUrl), new Redis(redisUrl)]
const streams = new Map<number, Response>()
let lastStream = 0
let received = 0

listener.on('message', (_channel: string, text: string) => {
  const { stream, seq, event } = JSON.parse(text) as JsonEvent
  const res = streams.get(stream)
  res?.write(renderFrame(seq, event))
  if (isTerminal(event)) res?.end()
  if (++received % CREDIT_EVERY === 0) send({ type: 'credit', count: received })
})
await listener.subscribe(TO_GATEWAY)

const app = express().post(BARE_PATH, (req, res) => {
  const stream = ++lastStream
  streams.set(stream, res)
  res.once('close', () => {
    streams.delete(stream)
    send({ type: 'stop', stream })
  })
  void openBare(req, res).then((prompt) => send({ type: 'start', stream, prompt }))
})
const server = createServer(app).listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  answerCalls({ port: typeof address === 'object' ? (address?.port ?? 0) : 0 })
})

function send(command: JsonCommand): void {
  commands.publish(TO_WORKER, JSON.stringify(command)).catch(() => {})
}
