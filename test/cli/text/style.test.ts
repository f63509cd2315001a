import { expect } from 'chai'
import { createStyle, styleOptions } from '../../../services/cli/text/style.ts'

describe('services/cli/text/style', () => {
  it('has colours on a terminal only, unless they are forced, and none with NO_COLOR', () => {
    const has = (env: Record<string, string>, isTerminal: boolean) => styleOptions(env, isTerminal).hasColours
    expect([has({}, true), has({}, false), has({ FORCE_COLOR: '1' }, false)]).to.deep.equal([true, false, true])
    expect([
      has({ NO_COLOR: '1', FORCE_COLOR: '1' }, true),
      has({ FORCE_COLOR: '0' }, true),
      has({ TERM: 'dumb' }, true),
    ]).to.deep.equal([false, false, false])
    expect(has({ NO_COLOR: '' }, true)).to.equal(true)
  })

  it('has the symbols that the locale can show: LC_ALL counts before LANG', () => {
    const isUtf8 = (env: Record<string, string>) => styleOptions(env, true).isUtf8
    expect([isUtf8({ LANG: 'de_DE.UTF-8' }), isUtf8({ LANG: 'C' }), isUtf8({})]).to.deep.equal([true, false, false])
    expect(isUtf8({ LANG: 'C.utf8', LC_ALL: 'C' })).to.equal(false)
    expect(Object.values(createStyle({ hasColours: false, isUtf8: false }).symbols).join('')).to.match(/^[\x20-\x7e]*$/)
  })
})
