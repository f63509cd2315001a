import { expect } from 'chai'
import { inWords } from '../../../../services/console/pages/settings/in-words.ts'
import { ApiError } from '../../../../shared/client/errors.ts'

const LABELS = { url: 'Address', prices: 'Prices', requests_per_minute: 'Requests a minute', instance: 'Provider' }

const said = (message: string, param?: string) =>
  inWords(LABELS)(
    new ApiError(new Response(null, { status: 400 }), JSON.stringify({ error: { type: 'x', message, param } })),
  )

describe('a refusal in the words of a form', () => {
  for (const [message, param, words] of [
    ['url must be a string of 1 to 2048 characters', '/url', 'Address must be a string of 1 to 2048 characters'],
    [
      'an openai-compatible instance needs the url of its API',
      '/url',
      'Address: an openai-compatible instance needs the url of its API',
    ],
    [
      'limits.requests_per_minute must be a whole number',
      '/limits/requests_per_minute',
      'Requests a minute must be a whole number',
    ],
    ['prices.m.input must be a number from 0 to 9', '/prices/m/input', 'Prices m.input must be a number from 0 to 9'],
    [
      'no instance is named a: create it with PUT /config/instances/a',
      '/routing/main/instance',
      'Provider: no instance is named a',
    ],
    ['the provider refuses the key', undefined, 'the provider refuses the key'],
  ] as const)
    it(`says "${words}"`, () => expect(said(message, param)).to.equal(words))

  it('leaves what no server has said as it is', () =>
    expect(inWords(LABELS)(new Error('url: PUT /x'))).to.equal('url: PUT /x'))
})
