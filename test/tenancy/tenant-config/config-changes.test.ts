import { expect } from 'chai'
import { EMPTY_CONFIG, type StoredInstance, type TenantConfig } from '../../../shared/tenancy/tenant-config/config.ts'
import { changedParts } from '../../../shared/tenancy/tenant-config/config-changes.ts'

const AT = '2026-11-22T09:00:00.000Z'
const instance = (name: string, text = 'sealed'): StoredInstance => ({
  ...{
    name,
    type: 'anthropic',
    key: 'sk…',
    sealed: { v: 1, kid: 'k1', key: 'wrapped', text },
    revision: `rev_${name}`,
  },
  ...{ created_at: AT, updated_at: AT },
})
const config = (fields: Partial<TenantConfig>): TenantConfig => ({ ...EMPTY_CONFIG, ...fields })
const asShown = { type: 'anthropic', key: 'sk…', created_at: AT, updated_at: AT }

describe('the changed parts of a configuration (D28)', () => {
  it('are none when nothing differs', () => {
    const same = () => config({ instances: [instance('main')] })
    expect(changedParts(same(), same())).to.deep.equal([])
  })

  it('name what was created and deleted, without what the API does not show, and nothing that stayed', () => {
    const before = config({ instances: [instance('kept'), instance('old')] })
    const after = config({ instances: [instance('kept'), instance('new')] })
    expect(changedParts(before, after)).to.deep.equal([
      { part: 'instance', name: 'old', from: asShown, to: null },
      { part: 'instance', name: 'new', from: null, to: asShown },
    ])
  })

  it('list an instance whose key differs only in what is sealed', () => {
    const [before, after] = ['a', 'b'].map((sealed) => config({ instances: [instance('main', sealed)] }))
    expect(changedParts(before ?? EMPTY_CONFIG, after ?? EMPTY_CONFIG)).to.deep.equal([
      { part: 'instance', name: 'main', from: asShown, to: asShown },
    ])
  })

  it('show parts without names as a whole, before and after', () => {
    const audit = { ...EMPTY_CONFIG.audit, retention_days: 7 }
    expect(changedParts(EMPTY_CONFIG, config({ audit }))).to.deep.equal([
      { part: 'audit', name: null, from: EMPTY_CONFIG.audit, to: audit },
    ])
  })
})
