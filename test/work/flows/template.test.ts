import { expect } from 'chai'
import fc from 'fast-check'
import type { TemplateValues } from '../../../shared/work/flows/port.ts'
import { type ParsedTemplate, parseTemplate } from '../../../shared/work/flows/template.ts'
import { CountedText } from '../../support/counted.ts'

const EMPTY: TemplateValues = { input: {}, sub_outputs: {}, memory: '' }

function parse(text: string): ParsedTemplate {
  const parsed = parseTemplate(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed
}

const render = (text: string, values: Partial<TemplateValues> = {}) => parse(text).render({ ...EMPTY, ...values })

describe('templates of flows', () => {
  const input = {
    text: 'hello',
    a: { b: [1, { c: 'deep' }, 'x'], n: null, yes: false, zero: 0, none: '' },
    'fär-ber$': 'ü',
    0: 'zero',
  }
  const RENDERED: readonly (readonly [template: string, result: string])[] = [
    ['', ''],
    ['plain } text { with } braces }}', 'plain } text { with } braces }}'],
    ['{{.input.text}}', 'hello'],
    ['<{{ .input.text }}|{{\n.input.text\t}}>', '<hello|hello>'],
    ['{{.input.a.b}}', '[1,{"c":"deep"},"x"]'],
    ['{{.input.a.b.0}}{{.input.a.b.1.c}}{{.input.a.b.2}}', '1deepx'],
    ['{{.input.a.n}},{{.input.a.yes}},{{.input.a.zero}},{{.input.a.none}}', 'null,false,0,'],
    ['{{.input.fär-ber$}}{{.input.0}}', 'üzero'],
    ['[{{.input.absent}}{{.input.text.length}}{{.input.a.b.length}}{{.input.a.b.01}}{{.input.a.b.9}}]', '[]'],
    ['{{.sub_outputs.price}} {{.sub_outputs.price.total}} {{.memory}}', '{"total":3} 3 remembered'],
  ]
  for (const [template, result] of RENDERED) {
    it(`D6.3: ${JSON.stringify(template)} becomes ${JSON.stringify(result)}`, () => {
      const values = { input, sub_outputs: { price: { total: 3 } }, memory: 'remembered' }
      expect(render(template, values)).to.equal(result)
    })
  }

  const WRONG = [
    '{{}}',
    '{{input.text}}',
    '{{.input}}',
    '{{.sub_outputs}}',
    '{{.memory.x}}',
    '{{.Input.a}}',
    '{{.other.a}}',
    '{{.input.}}',
    '{{.input..a}}',
    '{{.input.a b}}',
    '{{..input.a}}',
    '{{.input.a | upper}}',
    '{{if .input.a}}',
    '{{"{{"}}',
    '{{{.input.a}}}',
    `{{.input${'.a'.repeat(17)}}}`,
  ]
  for (const text of WRONG) {
    it(`D6.3: ${text} is no reference`, () => {
      const parsed = parseTemplate(`{{.memory}} ${text}`)
      expect(parsed).to.have.property('problem').that.includes('is no reference').and.includes('{{.memory}}')
    })
  }

  it('an open {{ without its }} is a problem that names the place, and a long wrong reference is cut in the message', () => {
    expect(parseTemplate('ab {{.input.text} and more')).to.have.property('problem').that.includes('at character 3')
    const long = parseTemplate(`{{${'x'.repeat(5_000)}}}`)
    expect(long).to.have.property('problem').that.has.length.below(300)
  })

  it('a template has at most 200 references', () => {
    expect(parse('{{.memory}}'.repeat(200)).references).to.have.length(200)
    expect(parseTemplate('{{.memory}}'.repeat(201)))
      .to.have.property('problem')
      .that.includes('200')
  })

  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'valueOf']) {
    it(`the name ${name} is found only where the value itself has it`, () => {
      const path = `{{.input.${name}}}{{.input.a.${name}}}{{.input.a.${name}.name}}{{.sub_outputs.${name}}}`
      expect(render(path, { input: { a: [{}] } })).to.equal('')
      expect(render(path, { input: { a: 'text' } })).to.equal('')
      const own = JSON.parse(`{"${name}": "own", "a": {"${name}": {"name": "inner"}}}`) as TemplateValues['input']
      expect(render(`{{.input.${name}}} {{.input.a.${name}.name}}`, { input: own })).to.equal('own inner')
    })
  }

  it('inserted values are never expanded again', () => {
    const text = '{{.memory}}{{.input.other}}{{'
    const values = { input: { text, other: 'SECRET' }, sub_outputs: { a: { text } }, memory: text }
    const expected = `${text} ${JSON.stringify({ text })} ${text}`
    expect(render('{{.input.text}} {{.sub_outputs.a}} {{.memory}}', values)).to.equal(expected)
  })

  it('a rendered text is cut at 4,000,000 characters, however often a large value is inserted', () => {
    const text = render('{{.input.big}}'.repeat(200), { input: { big: 'x'.repeat(1_000_000) } })
    expect(text).to.have.length(4_000_000 + '[cut]'.length)
    expect(text.endsWith('x[cut]')).to.equal(true)
  })

  it('a template is parsed by looking at each of its characters a few times, whatever it holds', () => {
    for (const text of ['{'.repeat(100_000), '{{'.repeat(50_000), '{{}'.repeat(33_333), `{{${' '.repeat(99_990)}}}`]) {
      const counted = new CountedText(text)
      parseTemplate(counted.text)
      expect(counted.looked).to.be.at.most(3 * text.length)
    }
  })

  it('texts without {{ render as themselves, and any value that is inserted appears whole', () => {
    const plain = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('{{', '{'))
    const property = fc.property(plain, plain, fc.jsonValue(), fc.string(), (before, after, value, memory) => {
      const whole = `${before.replace(/\{$/, '')}{{.input.v}}${after}`
      const shown = typeof value === 'string' ? value : JSON.stringify(value)
      expect(render(before, { memory })).to.equal(before)
      expect(render(whole, { input: { v: value }, memory })).to.equal(`${before.replace(/\{$/, '')}${shown}${after}`)
    })
    fc.assert(property, { numRuns: 500 })
  })

  it('parsing any text ends in a template or a problem, and rendering never throws', () => {
    const pieces = fc.constantFrom(
      '{{',
      '}}',
      '.',
      'input',
      'sub_outputs',
      'memory',
      ' ',
      'a',
      '{',
      '}',
      '0',
      '__proto__',
    )
    const property = fc.property(fc.array(pieces, { maxLength: 30 }), fc.object(), (parts, value) => {
      const parsed = parseTemplate(parts.join(''))
      if ('problem' in parsed) expect(parts.join('')).to.include('{{')
      else parsed.render({ input: value, sub_outputs: {}, memory: '' })
    })
    fc.assert(property, { numRuns: 1_000 })
  })
})
