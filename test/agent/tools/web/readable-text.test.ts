import { expect } from 'chai'
import { toReadableText } from '../../../../shared/agent/tools/web/readable-text.ts'
import { longestStall } from '../../../support/stall.ts'

const read = (html: string) => toReadableText(html, 'https://site.example/a/b')

describe('the readable text of a page', () => {
  it('marks headings, list items, table cells and paragraphs', async () => {
    const html = '<h2>Fruit</h2><p>Some:<ul><li>apple<li>pear</ul><table><tr><td>1<td>2</tr><tr><th>3</table>'
    expect(await read(html)).to.equal('## Fruit\n\nSome:\n\n- apple\n- pear\n\n\t1\t2\n\n\t3')
  })

  it('reduces white space to one space, except in pre', async () => {
    expect(await read('<p>a \n\t b<br>c</p><pre>  x\n    y</pre>')).to.equal('a b\nc\n\n  x\n    y')
  })

  it('leaves out scripts, styles, comments and similar elements, whatever they contain', async () => {
    const html =
      '<style>a{}</style>1<script>"</p><b>"</script>2<!-- <p>x -->3<noscript>y</noscript>4<svg><text>z</text></svg>5'
    expect(await read(`<!doctype html>${html}<SCRIPT>var x</SCRIPT >6`)).to.equal('123456')
  })

  it('decodes entities once and keeps unknown ones unchanged', async () => {
    expect(await read('&lt;b&gt; &amp;lt; &#233;&#xE9;&eacute; &nbsp;&constructor; &#0; &#x110000; &mdash;')).to.equal(
      '<b> &lt; éé&eacute; &constructor; \uFFFD \uFFFD —',
    )
  })

  it('makes links absolute and removes those without an http address', async () => {
    const html = `<a href="c?x=1&amp;y=2">one</a> <a class=q href='//other.example/'>two</a> <a href=#top>three</a> <a href="javascript:x()">four</a>`
    expect(await read(html)).to.equal(
      '[one](https://site.example/a/c?x=1&y=2) [two](https://other.example/) three four',
    )
  })

  it('a > within quotes does not end a tag', async () => {
    expect(await read('<p title="a>b" class=\'c>d\'>text')).to.equal('text')
  })

  it('a < that begins no tag stays in the text', async () => {
    expect(await read('1 < 2 and 3 <4> 5')).to.equal('1 < 2 and 3 <4> 5')
  })

  it('converts a megabyte of any input in 5 s without blocking the event loop for 150 ms', async () => {
    const pieces = [
      '<',
      '<p>',
      '<a href=x>',
      '<a "',
      '<!--',
      '<script>',
      '&#1',
      '&amp;',
      '<pre> ',
      '\n',
      ' ',
      '</script ',
    ]
    for (const piece of pieces) {
      const html = piece.repeat(2 ** 20 / piece.length)
      const start = performance.now()
      const stall = await longestStall(() => read(html))
      expect(stall, piece).to.be.below(150)
      expect(performance.now() - start, piece).to.be.below(5_000)
    }
  })
})
