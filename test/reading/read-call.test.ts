import { expect } from 'chai'
import fc from 'fast-check'
import { callText } from '../../services/cli/follow/call-line.ts'
import { previewLines } from '../../services/cli/follow/preview.ts'
import { showHidden } from '../../shared/reading/hidden.ts'
import { type AskedCall, readCall } from '../../shared/reading/read-call.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { askedCall, pairsOfInputs } from './fuzzed-calls.ts'

describe('what a person allows (P24)', () => {
  const folder = useTempFolder()
  /** The text of each surface. */
  const shown = (toolName: string, call: AskedCall) => ({
    console: JSON.stringify(readCall(call)),
    terminal: [callText({ toolName, input: call.input }), ...previewLines(call)].join('\n'),
  })

  it('is shown differently whenever what runs differs, in the console and on a terminal, and holds nothing hidden', async () => {
    await fc.assert(
      fc.asyncProperty(pairsOfInputs, async ({ name, input, other }) => {
        if (JSON.stringify(input) === JSON.stringify(other)) return
        const [one, two] = [
          shown(name, await askedCall(folder.path, name, input)),
          shown(name, await askedCall(folder.path, name, other)),
        ]
        for (const surface of ['console', 'terminal'] as const) {
          expect(one[surface], surface).not.to.equal(two[surface])
          expect(one[surface]).not.to.match(/[\u202a-\u202e\u2066-\u2069\u200b\u200e\u061c\u00a0\u00ad\u3164]/)
        }
      }),
      { numRuns: 3_000 },
    )
  })

  it('names the host that a request goes to as the sender of it reads it, not as its preview is escaped', () => {
    const url = 'http://bank\u00ad.test\\@evil.test/'
    const preview = { kind: 'request', method: 'GET', url: showHidden(url) } as const
    expect(readCall({ input: { url }, preview })).to.deep.equal({
      ...{ kind: 'request', method: 'GET', written: 'http://bank\\u00ad.test\\@evil.test/', rest: undefined },
      address: { before: 'http://', host: 'bank.test', after: '/@evil.test/', isAsWritten: false },
    })
  })
})
