import { expect } from 'chai'
import { changeOf, fits, previewLines, shortened } from '../../../services/cli/follow/preview.ts'
import { createStyle } from '../../../services/cli/text/style.ts'

const style = createStyle({ hasColours: false, isUtf8: true })
const diff = '--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ three\u001b[2J\n'
const asked = { input: {}, preview: { kind: 'diff' as const, path: 'a.txt', diff } }

describe('services/cli/follow/preview', () => {
  it('shows every line of a change, also one that looks like the header of a diff, and no escape sequence', () => {
    expect(previewLines(asked)).to.deep.equal(['@@ -1,2 +1,2 @@', ' one', '--- two', '+++ three\\u001b[2J'])
    expect(changeOf(asked)).to.equal('+1 -1')
  })

  it('shows that nothing changes', () => {
    const same = { ...asked, preview: { ...asked.preview, diff: '--- a.txt\n+++ a.txt\n' } }
    expect([previewLines(same), changeOf(same)]).to.deep.equal([[], '+0 -0'])
  })

  it('shows the whole input below a command or a request that does not have all of it, and below a change that is cut', () => {
    const command = { kind: 'command' as const, command: 'a &&\nb' }
    expect(previewLines({ input: { command: 'a &&\nb' }, preview: command })).to.deep.equal(['$ a &&', '  b'])
    expect(previewLines({ input: { command: 'a &&\nb', timeout_ms: 5 }, preview: command }).slice(2)).to.deep.equal([
      ...['{', '  "timeout_ms": 5', '}'],
    ])
    const cut = { ...asked.preview, diff: `${diff}[… the rest is left out …]\n` }
    expect(previewLines({ input: { content: 'x' }, preview: cut }).join('\n')).to.include('"content": "x"')
    expect(previewLines({ input: { n: 1 } })).to.deep.equal(['{', '  "n": 1', '}'])
  })

  it('shows the host of a request apart, and the address as it is read beside the one that was written', () => {
    const lines = (url: string) => previewLines({ input: { url }, preview: { kind: 'request', method: 'GET', url } })
    expect(lines('https://a/b')).to.deep.equal(['GET https://a/b', '  to a'])
    expect(lines('http://bank.test%2flogin@127.0.0.1:1/')).to.include('  to 127.0.0.1:1')
    expect(lines('http://аpple.test/')).to.deep.equal([
      'GET http://xn--pple-43d.test/',
      '  to xn--pple-43d.test',
      '  as written: http://аpple.test/',
    ])
  })

  it('says how much is left out, and whether that is anything', () => {
    const lines = ['1', '2', '3', 'a long line']
    expect(shortened(lines, { most: 3, columns: 5, style })).to.deep.equal(['1', '2', '… 2 more lines'])
    expect(shortened(['a long line'], { most: 3, columns: 5, style })).to.deep.equal(['a lo…'])
    expect([fits(lines, { most: 4, columns: 11 }), fits(lines, { most: 3, columns: 11 })]).to.deep.equal([true, false])
    expect(fits(lines, { most: 4, columns: 10 })).to.equal(false)
  })
})
