import { assistant, type BadRequest, call, image, png, request, result, user } from './make.ts'

export const badSizes: readonly BadRequest[] = [
  {
    why: 'too many messages',
    payload: request(
      Array.from({ length: 41 }, (_, index) => (index % 2 === 0 ? user('a') : assistant('b'))),
    ),
    findings: [['message-count', 'messages']],
  },
  { why: 'too many bytes', payload: request([user('é'.repeat(9950))]), findings: [['body-size', '']] },
  {
    why: 'too many images and pages',
    payload: request([
      user('a'),
      assistant([call('t')]),
      user([
        result('t', { content: [image(), image()] }),
        image(),
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
        { type: 'document', source: { type: 'url', url: 'https://example.org/a.pdf' } },
      ]),
    ]),
    findings: [['image-count', 'messages']],
  },
  {
    why: 'too large an image',
    payload: request([user([png(8001, 10)])]),
    findings: [['image-size', 'messages.0.content.0']],
  },
  {
    why: 'too large images among many',
    payload: request([user([png(2001, 10), png(2000, 2000)]), assistant('b'), user([png(10, 2001)])]),
    findings: [
      ['many-image-size', 'messages.0.content.0'],
      ['many-image-size', 'messages.2.content.0'],
    ],
  },
]
