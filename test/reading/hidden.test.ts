import { expect } from 'chai'
import fc from 'fast-check'
import { showControls, showHidden, showJson } from '../../shared/reading/hidden.ts'

describe('what a person reads before they decide', () => {
  /** Characters of every kind that a text can hide, and what looks like their escapes. */
  const tricky = fc.string({
    unit: fc.constantFrom(
      ...[
        'a',
        ' ',
        '\n',
        '\\',
        'r',
        'n',
        't',
        '\t',
        'u',
        '{',
        '}',
        '2',
        '0',
        'e',
        '\u202e',
        '\u202c',
        '\u061c',
        '\u200e',
        '\u200b',
        '\u200d',
        '\ufe0f',
        '\u00a0',
        '\u00ad',
        '\u3164',
      ],
      ...[
        '\ufeff',
        '\u2028',
        '\u2800',
        '\u3000',
        '\u034f',
        '\u{e0041}',
        '\u{e0100}',
        '\ud800',
        '\ue000',
        '\u001b',
        '\r',
        '\u0301',
        'é',
        'е',
        '\u2126',
        '\u03a9',
        '👩',
        '\u0085',
      ],
    ),
    maxLength: 12,
  })

  it('shows what is hidden: no control, mark, blank, filler, tag or private character is left', () => {
    for (const char of '\u200b\u00a0\u3164\u00ad\ufeff\u061c\u200e\u200f\u2028\u202e\u2066\u2800\u3000\u115f\u034f\ue000\u0085')
      expect(showHidden(`a${char}b`)).to.match(/^a\\u[\da-f]{4}b$/)
    expect(showHidden('a\u{e0041}b')).to.equal('a\\u{e0041}b')
    expect(showHidden('e\u0301')).to.equal('e\\u0301')
    expect(showHidden('é शि')).to.equal('é शि')
  })

  it('is another text whenever the text is another one, also where it looks like an escape', () => {
    expect(showHidden('\\u202e')).not.to.equal(showHidden('\u202e'))
    fc.assert(
      fc.property(
        tricky,
        tricky,
        (one, other) =>
          one === other || (showHidden(one) !== showHidden(other) && showControls(one) !== showControls(other)),
      ),
      { numRuns: 20_000 },
    )
  })

  it('as JSON it means the same, and holds nothing hidden', () => {
    fc.assert(
      fc.property(tricky, (text) => {
        expect(JSON.parse(showJson({ [text]: text }, 2))).to.deep.equal({ [text]: text })
        expect(showJson(text)).not.to.match(/[\u202a-\u202e\u200b-\u200c\u00ad\u3164\ue000]/)
      }),
    )
  })
})
