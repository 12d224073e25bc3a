// The page's texts, in English or in Chinese: in the language of its address
// ("?lang=zh"), else in that of the run that wrote it. The names of operations
// stay; devices and notes are in the language of the run. Texts that do not
// change stand in the page in both languages.

// An error is shown, instead of a page that looks empty.
window.addEventListener('error', (event) => {
  document.getElementById('error').textContent =
      'This page failed（本页出错）: ' + event.message;
});

const CHINESE = {
  'Timeline of {0}': '时间线：{0}',
  'Nothing was recorded.': '没有任何记录。',
  '{0} call in {1}.': '{1}内共{0}次调用。',
  '{0} calls in {1}.': '{1}内共{0}次调用。',
  '{0} of {1} calls': '{1}次调用中有{0}次',
  'in sight: {0}': '可见范围：{0}',
  'at most {0}': '最多{0}',
  'cut here': '在此截断',
  'front end': '前端',
  'memory of {0}': '{0}的内存',
  'pinned memory of {0}': '{0}的锁页内存',
  'Devices': '设备',
  'Notes': '注意',
  'The selected call': '选中的调用',
  // The terms of a call's facts, and of a memory's.
  'kind': '种类',
  'inputs': '输入',
  'in place': '原地',
  'yes': '是',
  'time to request': '提交用时',
  'host time': '主机用时',
  'in the queue': '在队列中',
  'on the device': '在设备上',
  'device time': '设备时间',
  'stream': '流',
  '{0}, operation {1}': '{0}，第{1}个操作',
  'source line': '源代码行',
  'requested at': '提交处',
  'memory taken': '取得的内存',
  'thread': '线程',
  'within': '外层',
  'began': '开始',
  '{0} into the recording': '记录开始后{0}',
  '{0} into {1}': '{1}开始后{0}',
  'in this pixel': '同一像素内',
  '{0} more; zoom in': '还有{0}次；请放大',
  'at': '时刻',
  'in use': '使用中',
  'in flight': '在途',
  'reserved': '保留',
  // The kinds of calls, and why one has no device time: export.cc.
  'operation': '操作',
  'view': '视图',
  'read': '读取',
  'wait': '等待',
  'queue full': '队列已满',
  'range': '区间',
  'none: it launches nothing on a device': '无：没有在设备上启动任务',
  'none: it failed, or was skipped after an earlier failure':
      '无：它出错了，或因之前的错误而跳过',
  'not measured; the notes say why': '没有测出；原因见注意事项',
};

const data = JSON.parse(document.getElementById('profile').textContent);
const asked = new URLSearchParams(location.search);
const language = asked.get('lang') === 'zh' || asked.get('lang') === 'en' ?
    asked.get('lang') : data.language;
document.documentElement.lang = language;

function say(english, ...words) {
  const text = language === 'zh' && CHINESE[english] || english;
  return text.replace(/\{(\d)\}/g, (_, i) => words[i]);
}

data.threads = data.threads.map(  // 'front end 2'
    (name) => name.replace('front end', say('front end')));
