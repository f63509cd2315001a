import { expect } from 'chai'
import { changeOf, previewLines, shortened } from '../../../services/cli/follow/preview.ts'
import { createStyle } from '../../../services/cli/text/style.ts'

const style = createStyle({ hasColours: false, isUtf8: true })
const diff = '--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ three\u001b[2J\n'
const asked = { input: {}, preview: { kind: 'diff' as const, path: 'a.txt', diff } }

describe('services/cli/follow/preview', () => {
  it('shows every line of a change, also one that looks like the header of a diff, and no escape sequence', () => {
    expect(previewLines(asked)).to.deep.equal(['@@ -1,2 +1,2 @@', ' one', '--- two', '+++ three[2J'])
    expect(changeOf(asked)).to.equal('+1 -1')
  })

  it('shows that nothing changes', () => {
    const same = { ...asked, preview: { ...asked.preview, diff: '--- a.txt\n+++ a.txt\n' } }
    expect([previewLines(same), changeOf(same)]).to.deep.equal([[], '+0 -0'])
  })

  it('shows a command, a request, or the whole input', () => {
    expect(previewLines({ input: {}, preview: { kind: 'command', command: 'a &&\nb' } })).to.deep.equal([
      '$ a &&',
      '  b',
    ])
    expect(previewLines({ input: {}, preview: { kind: 'request', method: 'GET', url: 'https://a/b' } })).to.deep.equal([
      'GET https://a/b',
    ])
    expect(previewLines({ input: { n: 1 } })).to.deep.equal(['{', '  "n": 1', '}'])
  })

  it('says how much is left out', () => {
    expect(shortened(['1', '2', '3', 'a long line'], { most: 3, columns: 5, style })).to.deep.equal([
      '1',
      '2',
      '… 2 more lines',
    ])
    expect(shortened(['a long line'], { most: 3, columns: 5, style })).to.deep.equal(['a lo…'])
  })
})
