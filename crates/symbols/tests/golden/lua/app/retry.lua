local retry = {}

function retry.run(action, times)
  for _ = 1, times do
    if pcall(action) then return true end
  end
end

return retry
