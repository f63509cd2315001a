import { expect } from 'chai'
import { FilePartType } from '../../../services/gateway/bodies/upload-form.ts'

describe('the type of a form’s file', () => {
  it('is found wherever the bytes are divided, with a quoted boundary too', () => {
    const form = [
      ...['preamble', '--a b', 'Content-Disposition: form-data; name="x"', '', '--a', '--a b'],
      ...['Content-Type: audio/webm;codecs=opus', 'Content-Disposition: form-data; name="file"; filename="ü"', '', '…'],
      ...['--a b', 'Content-Disposition: form-data; name="file"; filename="b"', 'Content-Type: text/plain', '', ''],
    ].join('\r\n')
    const bytes = Buffer.from(form)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const type = new FilePartType('multipart/form-data; charset=x; boundary="a b"')
      type.push(bytes.subarray(0, cut))
      type.push(bytes.subarray(cut))
      expect(type.value, String(cut)).to.equal('audio/webm;codecs=opus')
    }
  })
})
