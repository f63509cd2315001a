import { expect } from 'chai'
import { servedVersion } from '../../../shared/work/flows/port.ts'

describe('the version of a flow that runs', () => {
  it('D26.3: is the newest one once that is published, and until then the published one that was kept', () => {
    expect(servedVersion({ state: 'published', version: 3 })).to.equal(3)
    expect(servedVersion({ state: 'draft', version: 3, kept_version: 2 })).to.equal(2)
    expect(servedVersion({ state: 'published', version: 3, kept_version: 2 })).to.equal(3)
  })

  it('does not exist for a draft that keeps none', () => {
    expect(servedVersion({ state: 'draft', version: 3 })).to.equal(null)
  })
})
