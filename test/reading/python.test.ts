import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import fc from 'fast-check'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { charactersModule } from '../../scripts/python-characters.ts'
import { showControls, showHidden, showJson } from '../../shared/reading/hidden.ts'
import { ROOT } from '../deploy/files.ts'

const CLIENT = `${ROOT}shared/client-python`

const PROGRAM = `
import json, sys
from agent_engine import show_controls, show_hidden, show_json
shown = [[show_hidden(text), show_controls(text), show_json({"a": [text]}), show_json([text], 2)] for text in json.load(sys.stdin)]
json.dump(shown, sys.stdout)
`

/** Characters of each kind that the lists tell apart, and what an escape is made of. */
const PARTS = [
  'a',
  '\\',
  'u',
  '0',
  '202e',
  '{e0041}',
  'r',
  'n',
  't',
  '\n',
  '\t',
  '\r',
  ' ',
  '\u00a0',
  '\u200b',
  '\u200d',
  '\ufe0f',
  '\u202e',
  '\u2028',
  '\u061c',
  '\u00ad',
  '\u3164',
  '\u{e0041}',
  '\u{f0000}',
  'é',
  'e',
  '\u0301',
  '\u0327',
  '\u212b',
  '\u{2f800}',
  '👩',
  '🏽',
  '🚀',
  '\u001b',
  '\ud800',
  '"',
  '한',
  '\u1100\u1161',
  'ﬁ',
]

describe('what is hidden from a reader, in Python', () => {
  it('is the list of shared/reading/hidden.ts', async () => {
    expect(await readFile(`${CLIENT}/agent_engine/_characters.py`, 'utf8')).to.equal(charactersModule())
  })

  it('is shown as shared/reading/hidden.ts shows it, whatever the text', async () => {
    const texts = fc.sample(fc.string({ unit: fc.constantFrom(...PARTS), maxLength: 12 }), 2_000)
    texts.push(...PARTS, '\\u202e', '\\u{e0041}', '\\n', '👩🏽\u200d🚀', 'e\u0301', '👩\ufe0f\u200d🚀')
    const env = { PATH: process.env['PATH'], PYTHONPATH: `${CLIENT}:${await requirePythonClient()}` }
    const running = promisify(execFile)('python3', ['-B', '-c', PROGRAM], { env, maxBuffer: 16 * 1024 * 1024 })
    running.child.stdin?.end(JSON.stringify(texts))
    const shown = JSON.parse((await running).stdout) as string[][]
    for (const [i, text] of texts.entries()) {
      const expected = [showHidden(text), showControls(text), showJson({ a: [text] }), showJson([text], 2)]
      expect(shown[i], JSON.stringify(text)).to.deep.equal(expected)
    }
  })
})
