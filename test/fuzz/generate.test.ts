import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { Random } from '../harness/seed.ts'
import type { Draft } from './draft.ts'
import { encode, pickDraft } from './draft.ts'
import { renderFinding } from './finding.ts'
import { make, recipeFor, simpler } from './generate.ts'
import { MUTATORS } from './mutators.ts'
import { request } from './request.ts'
import { casesFor } from './table.ts'
import { WIRE_MUTATORS } from './wire-mutators.ts'

const VICTIMS = {
  session: 's',
  run: `run_${'a'.repeat(32)}`,
  asking: `run_${'b'.repeat(32)}`,
  permission: `perm_${'c'.repeat(32)}`,
  flow: 'f',
  plan: 'plan_1',
  trace: `trace_${'0'.repeat(8)}${'d'.repeat(24)}`,
  entry: `mem_${'e'.repeat(32)}`,
}

const bytesOf = (seed: number, index: number) => make(recipeFor(seed, index), VICTIMS).bytes

/** The body's bytes, and those that its head announces. */
function lengthsOf(bytes: Buffer): [announced: number, sent: number] {
  const end = bytes.indexOf('\r\n\r\n')
  const announced = /^content-length: (\d+)$/im.exec(bytes.toString('latin1', 0, end).replaceAll('\r', ''))?.[1]
  return [Number(announced ?? 0), bytes.length - end - 4]
}

describe('the generator of the fuzz script', () => {
  it('seed and number alone determine a case', () => {
    for (const index of [0, 7, 99_999]) expect(bytesOf(1, index).equals(bytesOf(1, index))).to.equal(true)
    expect(bytesOf(1, 7).equals(bytesOf(2, 7))).to.equal(false)
  })

  it('of a thousand cases, more than nine hundred differ from all others', () => {
    const all = new Set(Array.from({ length: 1_000 }, (_, i) => bytesOf(3, i).toString('latin1')))
    expect(all.size).to.be.above(900)
  })

  it('a framed case ends where its headers say, so that another may follow', () => {
    for (let i = 0; i < 3_000; i += 1) {
      const { bytes, isFramed } = make(recipeFor(4, i), VICTIMS)
      const [announced, sent] = lengthsOf(bytes)
      if (isFramed && !bytes.includes('Transfer-Encoding'))
        expect(sent, bytes.toString('latin1', 0, 500)).to.equal(announced)
    }
  })

  it('every mutator changes the request, and leaves the given draft unchanged', () => {
    for (const [name, mutate] of Object.entries({ ...MUTATORS, ...WIRE_MUTATORS })) {
      const isChanged = Array.from({ length: 50 }, (_, seed) => {
        const draft: Draft = pickDraft(VICTIMS, new Random(seed))
        const before = encode(draft)
        const after = encode(mutate(draft, new Random(seed)))
        expect(encode(draft).equals(before), name).to.equal(true)
        return !after.equals(before)
      })
      expect(isChanged, name).to.include(true)
    }
  })

  it('a simpler recipe lacks one step and keeps the others', () => {
    const recipe = { base: 1, steps: ['a', 'b', 'c'].map((name, seed) => ({ name, seed })) }
    expect(simpler(recipe).map(({ steps }) => steps.map(({ name }) => name).join(''))).to.deep.equal(['bc', 'ac', 'ab'])
  })
})

describe('the hand-written cases of the fuzz script', () => {
  const cases = casesFor(VICTIMS)

  it('P12: are at least 240, of which at most 5 repeat the bytes of another', () => {
    expect(cases).to.have.length.at.least(240)
    const sent = new Set(cases.map(([, bytes]) => bytes.toString('latin1')))
    expect(sent.size).to.be.at.least(cases.length - 5)
  })

  it('can leave out a header, send it twice and choose its spelling', () => {
    const sent = request({ method: 'GET', path: '/', headers: { Authorization: undefined, Host: ['a', 'b'] } })
    expect(String(sent)).to.equal('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
  })

  it('the command line that a finding prints sends the same bytes again', () => {
    const bytes = Buffer.from([...Array.from({ length: 256 }, (_, i) => i), ...Buffer.from("'%s\\n\\101 $(id) `id`")])
    const printed = /printf .*(?= \| nc)/s.exec(renderFinding({ name: 'x', problems: ['y'], bytes }, 1))?.[0] ?? ''
    expect(execFileSync('sh', ['-c', printed]).equals(bytes)).to.equal(true)
  })
})
