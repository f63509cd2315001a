import { expect } from 'chai'
import { chooseSeed, Random } from './seed.ts'

const draw = (random: Random, count = 20) => Array.from({ length: count }, () => random.next())

describe('the seed', () => {
  it('is reported, whether given or drawn, so that a failure can be replayed', () => {
    const reported: string[] = []
    const report = (line: string) => void reported.push(line)
    const drawn = chooseSeed(undefined, report)
    expect(chooseSeed('42', report)).to.equal(42)
    expect(reported).to.deep.equal([`seed ${drawn}`, 'seed 42'])
  })

  it('that is not a whole number in range is refused', () => {
    for (const given of ['', 'x', '1.5', '-1', String(2 ** 32)])
      expect(() => chooseSeed(given, () => {}), given).to.throw('not a whole number from 0 to 4294967295')
  })

  it('determines everything that is drawn', () => {
    expect(draw(new Random(7))).to.deep.equal(draw(new Random(7)))
    expect(draw(new Random(7))).to.not.deep.equal(draw(new Random(8)))
  })

  it('and a name determine what a fork draws, whatever was drawn before', () => {
    const [fresh, used] = [new Random(7), new Random(7)]
    draw(used)
    expect(draw(used.fork('a'))).to.deep.equal(draw(fresh.fork('a')))
    expect(draw(fresh.fork('b'))).to.not.deep.equal(draw(fresh.fork('a')))
  })
})

describe('the random generator', () => {
  it('draws numbers that are evenly distributed between 0 and 1', () => {
    const values = draw(new Random(1), 10_000)
    expect(Math.min(...values)).to.be.at.least(0)
    expect(Math.max(...values)).to.be.below(1)
    for (let part = 0; part < 10; part++) {
      const count = values.filter((value) => Math.floor(value * 10) === part).length
      expect(count, `tenth ${part}`).to.be.within(850, 1150)
    }
  })

  it('is true about once in four times at 0.25, never at 0 and always at 1', () => {
    const random = new Random(2)
    const hits = (probability: number) => Array.from({ length: 4000 }, () => random.chance(probability)).filter(Boolean)
    expect(hits(0.25).length).to.be.within(900, 1100)
    expect(hits(0)).to.have.lengthOf(0)
    expect(hits(1)).to.have.lengthOf(4000)
  })

  it('draws integers with both limits included', () => {
    const random = new Random(3)
    const drawn = new Set(Array.from({ length: 200 }, () => random.between(3, 5)))
    expect(drawn).to.deep.equal(new Set([3, 4, 5]))
  })

  it('picks every item of a list, and throws for an empty list', () => {
    const random = new Random(4)
    expect(new Set(Array.from({ length: 50 }, () => random.pick(['a', 'b'])))).to.deep.equal(new Set(['a', 'b']))
    expect(() => random.pick([])).to.throw('empty list')
  })

  it('shuffles a copy without losing an item', () => {
    const list = Array.from({ length: 30 }, (_, i) => i)
    const shuffled = new Random(5).shuffle(list)
    expect(shuffled).to.have.members(list).and.not.deep.equal(list)
    expect(list[0]).to.equal(0)
  })
})
