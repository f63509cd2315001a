import { expect } from 'chai'
import { isMetadataAddress } from '../../../shared/platform/net/public-address.ts'

const FORMS = `
  169.254.169.254 ::ffff:169.254.169.254 ::a9fe:a9fe ::ffff:0:a9fe:a9fe 64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe
  2002:a9fe:a9fe:: 2002:a9fe:a9fe:1::1 fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0 169.254.170.2 100.100.100.200 168.63.129.16
  192.0.0.192 fd00:ec2::254 fd00:ec2:0:0:0:0:0:254 fd20:ce::254`

describe('addresses of metadata services', () => {
  it('P14: are known in every form that an IPv4 address has inside IPv6', () => {
    const forms = FORMS.trim().split(/\s+/)
    expect(forms.filter((address) => !isMetadataAddress(address))).to.deep.equal([])
  })

  it('P14: their neighbours are not, since operators may allow private addresses', () => {
    const others = [
      '169.254.169.253',
      '169.254.0.1',
      'fe80::1',
      '64:ff9b:1::a00:1',
      'fd00:ec2::255',
      '10.0.0.1',
      '::1',
      '',
    ]
    expect(others.filter(isMetadataAddress)).to.deep.equal([])
  })
})
