import type { Answer } from '../harness/answer.ts'
import { Connection } from './connection.ts'
import type { Finding } from './finding.ts'
import { type FuzzInput, send } from './input.ts'
import { request } from './request.ts'

/** Requests by number. `at` is called in ascending order. */
export type Inputs = { count: number; at(index: number): FuzzInput | Promise<FuzzInput> }

/** From sending a request to its answers, in milliseconds since 1970. */
export type Span = { index: number; from: number; to: number }

export type Played = {
  inputs: Inputs
  findings: (Finding & { index: number })[]
  spans: Span[]
  statuses: Map<number, number>
}

const MAX_FINDINGS = 100

/** Sends all requests over `concurrency` connections at a time, which are reused where possible. */
export async function play(inputs: Inputs, port: number, concurrency: number): Promise<Played> {
  const played: Played = { inputs, findings: [], spans: [], statuses: new Map() }
  let next = 0
  const worker = async () => {
    let connection: Connection | undefined
    while (next < inputs.count) {
      const index = next++
      const input = await inputs.at(index)
      if (input.isLone || !connection?.isReusable) {
        connection?.[Symbol.dispose]()
        connection = await Connection.open(port)
      }
      const answers = await playOne({ input, index, connection }, played)
      await cleanUp(answers, port)
    }
    connection?.[Symbol.dispose]()
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return played
}

type One = { input: FuzzInput; index: number; connection: Connection }

async function playOne({ input, index, connection }: One, { findings, spans, statuses }: Played): Promise<Answer[]> {
  const from = now()
  const { answers, problems } = await send(input, connection)
  spans.push({ index, from, to: now() })
  for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  if (problems.length > 0 && findings.length < MAX_FINDINGS) {
    findings.push({ index, name: input.name, problems, bytes: input.bytes })
  }
  return answers
}

const now = () => performance.timeOrigin + performance.now()

/** Deletes the sessions that the requests created, since the server limits their number. */
async function cleanUp(answers: readonly Answer[], port: number): Promise<void> {
  for (const { status, body } of answers) {
    const id = status === 201 ? /"session_id":"([^"]+)"/.exec(body.toString())?.[1] : undefined
    if (id === undefined) continue
    using connection = await Connection.open(port)
    await connection.ask({ bytes: request({ method: 'DELETE', path: `/v1/sessions/${id}` }) })
  }
}
