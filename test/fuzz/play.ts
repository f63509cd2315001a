import type { Answer } from '../harness/answer.ts'
import { Connection } from './connection.ts'
import type { Finding } from './finding.ts'
import { request } from './request.ts'
import { fire, type Shot } from './shot.ts'

/** Shots by number; `at` is called in their order. */
export type Shots = { count: number; at(index: number): Shot | Promise<Shot> }

/** When a shot was under way, in milliseconds since 1970. */
export type Span = { index: number; from: number; to: number }

export type Played = {
  shots: Shots
  findings: (Finding & { index: number })[]
  spans: Span[]
  statuses: Map<number, number>
}

const MAX_FINDINGS = 100

/** Fires all shots over `lanes` connections at a time, which are kept for as long as they may be. */
export async function play(shots: Shots, port: number, lanes: number): Promise<Played> {
  const played: Played = { shots, findings: [], spans: [], statuses: new Map() }
  let next = 0
  const lane = async () => {
    let connection: Connection | undefined
    while (next < shots.count) {
      const index = next++
      const shot = await shots.at(index)
      if (shot.isLone || !connection?.isReusable) {
        connection?.[Symbol.dispose]()
        connection = await Connection.open(port)
      }
      const answers = await playOne({ shot, index, connection }, played)
      await cleanUp(answers, port)
    }
    connection?.[Symbol.dispose]()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return played
}

type One = { shot: Shot; index: number; connection: Connection }

async function playOne({ shot, index, connection }: One, { findings, spans, statuses }: Played): Promise<Answer[]> {
  const from = now()
  const { answers, problems } = await fire(shot, connection)
  spans.push({ index, from, to: now() })
  for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  if (problems.length > 0 && findings.length < MAX_FINDINGS) {
    findings.push({ index, name: shot.name, problems, bytes: shot.bytes })
  }
  return answers
}

const now = () => performance.timeOrigin + performance.now()

/** Sessions that came of it go again: there is room for so many only. */
async function cleanUp(answers: readonly Answer[], port: number): Promise<void> {
  for (const { status, body } of answers) {
    const id = status === 201 ? /"session_id":"([^"]+)"/.exec(body.toString())?.[1] : undefined
    if (id === undefined) continue
    using connection = await Connection.open(port)
    await connection.ask({ bytes: request({ method: 'DELETE', path: `/v1/sessions/${id}` }) })
  }
}
