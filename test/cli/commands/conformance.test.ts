import { expect } from 'chai'
import { isOfRun, readScenarios } from '../../conformance/scenario.ts'
import { startConformanceServer } from '../../conformance/server.ts'
import { Ae, useAe } from '../../support/ae.ts'

/** For `stall` a client has to accept less silence than `ae` does. Without a key a start is sent once, and `ae` always sends one. */
const HEADS = readScenarios()
  .map(({ head }) => head)
  .filter(isOfRun)
  .filter((head) => head.name !== 'stall' && head.idempotency_key !== false)

const CODES = {
  done: [0, 3],
  plan_queued: [0, 3],
  error: [1, 130],
  lost: [4],
  refused: [1, 2, 3, 4, 75, 77],
  connection: [69],
}

type Line = { id?: number; event: string; data?: { code?: string }; output?: string }

describe('ae run --json passes the conformance kit', () => {
  const at = useAe(startConformanceServer)

  for (const head of HEADS)
    it(`"${head.name}": ${head.about}`, async () => {
      const ae = new Ae(`${at.server.url}/${head.name}`, at.home)
      const approve = head.permissions === 'deny' ? 'never' : 'all'
      const { code, out, err } = await ae.run(['run', '--json', '--approve', approve, 'hi'])
      const lines = out
        .trim()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line)
      const result = lines.pop()
      const { events, text, end, code: errorCode } = head.expect
      expect(result?.event).to.equal('result')
      expect(lines).to.have.length(events)
      expect(CODES[end], err).to.include(code)
      if (end === 'done' || end === 'plan_queued') expect(result?.output).to.equal(text)
      if (end === 'error') expect(lines.at(-1)?.data?.code).to.equal(errorCode)
      const play = at.server.play(head.name)
      await play?.over
      expect(play?.problems).to.deep.equal([])
      expect(play?.resent).to.equal(0)
    })
})
