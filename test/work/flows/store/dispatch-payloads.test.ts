import { expect } from 'chai'
import type { DispatchOutput } from '../../../../shared/work/flows/port.ts'
import { fitResult } from '../../../../shared/work/flows/store/dispatch-payloads.ts'
import { OK, OUTPUT } from '../../../contract/dispatch-setup.ts'

const LIMIT = 700_000
const LONG = 'x'.repeat(LIMIT)

describe('a result that is to be stored', () => {
  const fit = (output: Partial<DispatchOutput>) => fitResult({ output: { ...OUTPUT, ...output }, result: OK }, LIMIT)

  it('stays as it is when it fits', () => {
    expect(fit({})).to.deep.equal({ output: OUTPUT, result: OK })
    const bytes = (output: object) => Buffer.byteLength(JSON.stringify(output))
    const raw_output = 'é'.repeat((LIMIT - bytes({ ...OUTPUT, raw_output: '' })) / 2)
    expect(fit({ raw_output }).output.raw_output).to.equal(raw_output)
    expect(fit({ raw_output: `${raw_output}é` }).output.raw_output).to.not.equal(`${raw_output}é`)
  })

  it('loses the end of its raw output first', () => {
    const { output, result } = fit({ raw_output: LONG })
    expect(output).to.deep.equal({ ...OUTPUT, raw_output: `${LONG.slice(0, 100_000)}\n[cut]` })
    expect(result).to.equal(OK)
  })

  it('loses the end of its timeline next', () => {
    const entry = { event: 'progress', at: '2026-11-22T10:00:00.000Z', data: { text: 'x'.repeat(5_000) } }
    const timeline = Array.from({ length: 200 }, (_, i) => ({ ...entry, event: `e${i}` }))
    const { output, result } = fit({ raw_output: LONG, timeline })
    expect(output.timeline).to.deep.equal(timeline.slice(0, 20))
    expect(output.output).to.deep.equal(OUTPUT.output)
    expect(result).to.equal(OK)
  })

  it('becomes an error when its output is too long by itself, or nested too deeply', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown
    for (const each of [LONG, deep]) {
      const { output, result } = fit({ output: each })
      expect(output).to.deep.equal({ ...OUTPUT, output: null, timeline: [] })
      expect(result).to.include({ status: 'error', turns: OK.turns, cost_usd: OK.cost_usd })
      expect(result.error).to.include({ status: 502, type: 'upstream_error' })
    }
  })
})
