import assert from 'node:assert/strict'

/**
 * Every call of the client about the voice of an agent, with models that spell a text as sound and read it back. The server that the client
 * was made for ignores the speaker and knows no models of this version.
 */
export const voiceChecks = (world) => ({
  'voice: speak with a speaker, listen, getSpeakers, getListener': () => world([], async ({ remote, spoken }) => {
    const response = await remote.voice.speak('Good day.', { speaker: 'ann' })
    const type = response.headers.get('content-type')
    assert.match(type, /^audio\//)
    assert.deepEqual(spoken, [{ text: 'Good day.', voice: 'ann' }])
    const audio = new Blob([await response.arrayBuffer()], { type })
    assert.deepEqual(await remote.voice.listen(audio), { text: 'Good day.' })
    assert.deepEqual(await remote.voice.getSpeakers(), [])
    assert.deepEqual(await remote.voice.getListener(), { enabled: true })
  }),
})
