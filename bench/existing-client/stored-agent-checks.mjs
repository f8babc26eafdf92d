import assert from 'node:assert/strict'

/** Every call of the client about the versions of an agent of code. The server that it was made for needs a package of its own for them. */
export const storedAgentChecks = (world) => ({
  'stored agents: create, list, update, versions, activate, compare, restore, delete': () => world(['One.', 'Two.'], async ({ client, remote, model }) => {
    await assert.rejects(client.getStoredAgent('guide').details(), { status: 404 })
    const created = await client.createStoredAgent({ id: 'guide', name: 'Guide', model: { provider: 'openai', name: 'gpt-5.5' }, instructions: 'Be brief.', autoPublish: false })
    assert.deepEqual([created.id, created.instructions, created.status], ['guide', 'Be brief.', 'draft'])
    const stored = client.getStoredAgent('guide')
    const updated = await stored.update({ instructions: 'Be polite.', changeMessage: 'Politer.' })
    assert.equal(updated.resolvedVersionId, '2')
    const { versions, total, hasMore } = await stored.listVersions({ page: 0, perPage: 1, orderBy: { field: 'versionNumber', direction: 'DESC' } })
    assert.deepEqual([versions.map(({ versionNumber, changeMessage }) => [versionNumber, changeMessage]), total, hasMore], [[[2, 'Politer.']], 2, true])
    await remote.generate('Hi')
    assert.doesNotMatch(JSON.stringify(model.calls[0].prompt), /Be (brief|polite)/)
    assert.deepEqual((await stored.activateVersion(versions[0].id)).activeVersionId, '2')
    await remote.generate('Hi')
    assert.match(JSON.stringify(model.calls[1].prompt), /Be polite\./)
    assert.equal((await stored.details()).activeVersionId, '2')
    const { diffs, fromVersion } = await stored.compareVersions('1', '2')
    assert.deepEqual([diffs, fromVersion.id], [[{ field: 'instructions', previousValue: 'Be brief.', currentValue: 'Be polite.' }], '1'])
    const restored = await stored.restoreVersion('1')
    assert.deepEqual([restored.versionNumber, restored.instructions, (await stored.getVersion('3')).instructions], [3, 'Be brief.', 'Be brief.'])
    assert.equal((await stored.createVersion({ changeMessage: 'The same.' })).versionNumber, 3)
    assert.equal((await stored.details(undefined, { status: 'draft' })).resolvedVersionId, '3')
    assert.equal((await stored.deleteVersion('1')).success, true)
    await assert.rejects(stored.getVersion('1'), { status: 404 })
    assert.deepEqual((await client.listStoredAgents()).agents.map(({ id }) => id), ['guide'])
    await assert.rejects(stored.delete(), { status: 409 })
  }),
})
